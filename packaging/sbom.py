#!/usr/bin/env python3
"""The libraries of the program `sheaf` as a CycloneDX list, from `cargo metadata` on standard input."""

import json
import sys


def linked(metadata):
    """Names the packages that the program is linked of: what sheaf-cli needs, without what tests and builds need."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    packages = {package["id"]: package for package in metadata["packages"]}
    waiting = [id for id, package in packages.items() if package["name"] == "sheaf-cli"]
    found = set()
    while waiting:
        id = waiting.pop()
        if id in found:
            continue
        found.add(id)
        for dependency in nodes[id]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    return [packages[id] for id in found]


def component(package):
    reference = f"pkg:cargo/{package['name']}@{package['version']}"
    entry = {
        "type": "library",
        "bom-ref": reference,
        "name": package["name"],
        "version": package["version"],
        "purl": reference,
    }
    if package.get("license"):
        entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    return entry


def main():
    version = sys.argv[1]
    packages = [package for package in linked(json.load(sys.stdin)) if package["source"]]
    packages.sort(key=lambda package: (package["name"], package["version"]))
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "sheaf", "version": version}},
        "components": [component(package) for package in packages],
    }
    json.dump(bom, sys.stdout, indent=1)
    print()


main()
