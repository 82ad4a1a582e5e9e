//! The locales of `lc_time_names`, and how they name days and months.
//!
//! A locale is a language and a country, `de_AT`. The names are those that MySQL gives, with the capital letters and
//! the short forms that it has. Locales whose names are not here cannot be set.
//!
//! Reference: MySQL manual, "MySQL Server Locale Support".

use std::array::from_fn;
use std::collections::HashMap;
use std::sync::LazyLock;

/// All locales, by their numbers.
pub const LOCALES: [&str; 111] = [
    "en_US", "en_GB", "ja_JP", "sv_SE", "de_DE", "fr_FR", "ar_AE", "ar_BH", "ar_JO", "ar_SA",
    "ar_SY", "be_BY", "bg_BG", "ca_ES", "cs_CZ", "da_DK", "de_AT", "es_ES", "et_EE", "eu_ES",
    "fi_FI", "fo_FO", "gl_ES", "gu_IN", "he_IL", "hi_IN", "hr_HR", "hu_HU", "id_ID", "is_IS",
    "it_CH", "ko_KR", "lt_LT", "lv_LV", "mk_MK", "mn_MN", "ms_MY", "nb_NO", "nl_NL", "pl_PL",
    "pt_BR", "pt_PT", "ro_RO", "ru_RU", "ru_UA", "sk_SK", "sl_SI", "sq_AL", "sr_RS", "ta_IN",
    "te_IN", "th_TH", "tr_TR", "uk_UA", "ur_PK", "vi_VN", "zh_CN", "zh_TW", "ar_DZ", "ar_EG",
    "ar_IN", "ar_IQ", "ar_KW", "ar_LB", "ar_LY", "ar_MA", "ar_OM", "ar_QA", "ar_SD", "ar_TN",
    "ar_YE", "de_BE", "de_CH", "de_LU", "en_AU", "en_CA", "en_IN", "en_NZ", "en_PH", "en_ZA",
    "en_ZW", "es_AR", "es_BO", "es_CL", "es_CO", "es_CR", "es_DO", "es_EC", "es_GT", "es_HN",
    "es_MX", "es_NI", "es_PA", "es_PE", "es_PR", "es_PY", "es_SV", "es_US", "es_UY", "es_VE",
    "fr_BE", "fr_CA", "fr_CH", "fr_LU", "it_IT", "nl_BE", "no_NO", "sv_FI", "zh_HK", "el_GR",
    "rm_CH",
];

/// What a locale calls days and months.
pub struct DateNames {
    /// From Monday on.
    pub weekdays: [&'static str; 7],
    pub short_weekdays: [&'static str; 7],
    pub months: [&'static str; 12],
    pub short_months: [&'static str; 12],
}

/// Locales, and their names of weekdays and months, each long and short.
type Row = (&'static str, [&'static str; 4]);

const NAMES: [Row; 38] = [
    (
        "en_US en_GB en_AU en_CA en_IN en_NZ en_PH en_ZA en_ZW",
        [
            "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday",
            "Mon|Tue|Wed|Thu|Fri|Sat|Sun",
            "January|February|March|April|May|June|July|August|September|October|November|December",
            "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec",
        ],
    ),
    (
        "ja_JP",
        [
            "月曜日|火曜日|水曜日|木曜日|金曜日|土曜日|日曜日",
            "月|火|水|木|金|土|日",
            "1月|2月|3月|4月|5月|6月|7月|8月|9月|10月|11月|12月",
            " 1月| 2月| 3月| 4月| 5月| 6月| 7月| 8月| 9月|10月|11月|12月",
        ],
    ),
    (
        "sv_SE sv_FI",
        [
            "måndag|tisdag|onsdag|torsdag|fredag|lördag|söndag",
            "mån|tis|ons|tor|fre|lör|sön",
            "januari|februari|mars|april|maj|juni|juli|augusti|september|oktober|november|december",
            "jan|feb|mar|apr|maj|jun|jul|aug|sep|okt|nov|dec",
        ],
    ),
    (
        "de_DE de_BE de_CH de_LU",
        [
            "Montag|Dienstag|Mittwoch|Donnerstag|Freitag|Samstag|Sonntag",
            "Mo|Di|Mi|Do|Fr|Sa|So",
            "Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember",
            "Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez",
        ],
    ),
    (
        "fr_FR fr_BE fr_CA fr_CH fr_LU",
        [
            "lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche",
            "lun|mar|mer|jeu|ven|sam|dim",
            "janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre",
            "jan|fév|mar|avr|mai|jun|jui|aoû|sep|oct|nov|déc",
        ],
    ),
    (
        "bg_BG",
        [
            "понеделник|вторник|сряда|четвъртък|петък|събота|неделя",
            "пн|вт|ср|чт|пт|сб|нд",
            "януари|февруари|март|април|май|юни|юли|август|септември|октомври|ноември|декември",
            "яну|фев|мар|апр|май|юни|юли|авг|сеп|окт|ное|дек",
        ],
    ),
    (
        "ca_ES",
        [
            "dilluns|dimarts|dimecres|dijous|divendres|dissabte|diumenge",
            "dl|dt|dc|dj|dv|ds|dg",
            "gener|febrer|març|abril|maig|juny|juliol|agost|setembre|octubre|novembre|desembre",
            "gen|feb|mar|abr|mai|jun|jul|ago|set|oct|nov|des",
        ],
    ),
    (
        "cs_CZ",
        [
            "Pondělí|Úterý|Středa|Čtvrtek|Pátek|Sobota|Neděle",
            "Po|Út|St|Čt|Pá|So|Ne",
            "leden|únor|březen|duben|květen|červen|červenec|srpen|září|říjen|listopad|prosinec",
            "led|úno|bře|dub|kvě|čen|čec|srp|zář|říj|lis|pro",
        ],
    ),
    (
        "da_DK",
        [
            "mandag|tirsdag|onsdag|torsdag|fredag|lørdag|søndag",
            "man|tir|ons|tor|fre|lør|søn",
            "januar|februar|marts|april|maj|juni|juli|august|september|oktober|november|december",
            "jan|feb|mar|apr|maj|jun|jul|aug|sep|okt|nov|dec",
        ],
    ),
    (
        "de_AT",
        [
            "Montag|Dienstag|Mittwoch|Donnerstag|Freitag|Samstag|Sonntag",
            "Mon|Die|Mit|Don|Fre|Sam|Son",
            "Jänner|Feber|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember",
            "Jän|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez",
        ],
    ),
    (
        "es_ES es_AR es_BO es_CL es_CO es_CR es_DO es_EC es_GT es_HN es_MX \
         es_NI es_PA es_PE es_PR es_PY es_SV es_US es_UY es_VE",
        [
            "lunes|martes|miércoles|jueves|viernes|sábado|domingo",
            "lun|mar|mié|jue|vie|sáb|dom",
            "enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre",
            "ene|feb|mar|abr|may|jun|jul|ago|sep|oct|nov|dic",
        ],
    ),
    (
        "fi_FI",
        [
            "maanantai|tiistai|keskiviikko|torstai|perjantai|lauantai|sunnuntai",
            "ma|ti|ke|to|pe|la|su",
            "tammikuu|helmikuu|maaliskuu|huhtikuu|toukokuu|kesäkuu|heinäkuu|elokuu|syyskuu|lokakuu|marraskuu|joulukuu",
            "tammi |helmi |maalis|huhti |touko |kesä  |heinä |elo   |syys  |loka  |marras|joulu ",
        ],
    ),
    (
        "he_IL",
        [
            "שני|שלישי|רביעי|חמישי|שישי|שבת|ראשון",
            "ב'|ג'|ד'|ה'|ו'|ש'|א'",
            "ינואר|פברואר|מרץ|אפריל|מאי|יוני|יולי|אוגוסט|ספטמבר|אוקטובר|נובמבר|דצמבר",
            "ינו|פבר|מרץ|אפר|מאי|יונ|יול|אוג|ספט|אוק|נוב|דצמ",
        ],
    ),
    (
        "hr_HR",
        [
            "Ponedjeljak|Utorak|Srijeda|Četvrtak|Petak|Subota|Nedjelja",
            "Pon|Uto|Sri|Čet|Pet|Sub|Ned",
            "Siječanj|Veljača|Ožujak|Travanj|Svibanj|Lipanj|Srpanj|Kolovoz|Rujan|Listopad|Studeni|Prosinac",
            "Sij|Vel|Ožu|Tra|Svi|Lip|Srp|Kol|Ruj|Lis|Stu|Pro",
        ],
    ),
    (
        "hu_HU",
        [
            "hétfő|kedd|szerda|csütörtök|péntek|szombat|vasárnap",
            "h|k|sze|cs|p|szo|v",
            "január|február|március|április|május|június|július|augusztus|szeptember|október|november|december",
            "jan|feb|már|ápr|máj|jún|júl|aug|sze|okt|nov|dec",
        ],
    ),
    (
        "id_ID",
        [
            "Senin|Selasa|Rabu|Kamis|Jumat|Sabtu|Minggu",
            "Sen|Sel|Rab|Kam|Jum|Sab|Min",
            "Januari|Pebruari|Maret|April|Mei|Juni|Juli|Agustus|September|Oktober|November|Desember",
            "Jan|Peb|Mar|Apr|Mei|Jun|Jul|Agu|Sep|Okt|Nov|Des",
        ],
    ),
    (
        "is_IS",
        [
            "mánudagur|þriðjudagur|miðvikudagur|fimmtudagur|föstudagur|laugardagur|sunnudagur",
            "mán|þri|mið|fim|fös|lau|sun",
            "janúar|febrúar|mars|apríl|maí|júní|júlí|ágúst|september|október|nóvember|desember",
            "jan|feb|mar|apr|maí|jún|júl|ágú|sep|okt|nóv|des",
        ],
    ),
    (
        "it_CH it_IT",
        [
            "lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica",
            "lun|mar|mer|gio|ven|sab|dom",
            "gennaio|febbraio|marzo|aprile|maggio|giugno|luglio|agosto|settembre|ottobre|novembre|dicembre",
            "gen|feb|mar|apr|mag|giu|lug|ago|set|ott|nov|dic",
        ],
    ),
    (
        "ko_KR",
        [
            "월요일|화요일|수요일|목요일|금요일|토요일|일요일",
            "월|화|수|목|금|토|일",
            "일월|이월|삼월|사월|오월|유월|칠월|팔월|구월|시월|십일월|십이월",
            " 1월| 2월| 3월| 4월| 5월| 6월| 7월| 8월| 9월|10월|11월|12월",
        ],
    ),
    (
        "lt_LT",
        [
            "Pirmadienis|Antradienis|Trečiadienis|Ketvirtadienis|Penktadienis|Šeštadienis|Sekmadienis",
            "Pr|An|Tr|Kt|Pn|Št|Sk",
            "sausio|vasario|kovo|balandžio|gegužės|birželio|liepos|rugpjūčio|rugsėjo|spalio|lapkričio|gruodžio",
            "Sau|Vas|Kov|Bal|Geg|Bir|Lie|Rgp|Rgs|Spa|Lap|Grd",
        ],
    ),
    (
        "lv_LV",
        [
            "pirmdiena|otrdiena|trešdiena|ceturtdiena|piektdiena|sestdiena|svētdiena",
            "P |O |T |C |Pk|S |Sv",
            "janvāris|februāris|marts|aprīlis|maijs|jūnijs|jūlijs|augusts|septembris|oktobris|novembris|decembris",
            "jan|feb|mar|apr|mai|jūn|jūl|aug|sep|okt|nov|dec",
        ],
    ),
    (
        "nb_NO no_NO",
        [
            "mandag|tirsdag|onsdag|torsdag|fredag|lørdag|søndag",
            "man|tir|ons|tor|fre|lør|søn",
            "januar|februar|mars|april|mai|juni|juli|august|september|oktober|november|desember",
            "jan|feb|mar|apr|mai|jun|jul|aug|sep|okt|nov|des",
        ],
    ),
    (
        "nl_NL nl_BE",
        [
            "maandag|dinsdag|woensdag|donderdag|vrijdag|zaterdag|zondag",
            "ma|di|wo|do|vr|za|zo",
            "januari|februari|maart|april|mei|juni|juli|augustus|september|oktober|november|december",
            "jan|feb|mrt|apr|mei|jun|jul|aug|sep|okt|nov|dec",
        ],
    ),
    (
        "pl_PL",
        [
            "poniedziałek|wtorek|środa|czwartek|piątek|sobota|niedziela",
            "pon|wto|śro|czw|pią|sob|nie",
            "styczeń|luty|marzec|kwiecień|maj|czerwiec|lipiec|sierpień|wrzesień|październik|listopad|grudzień",
            "sty|lut|mar|kwi|maj|cze|lip|sie|wrz|paź|lis|gru",
        ],
    ),
    (
        "pt_BR",
        [
            "segunda|terça|quarta|quinta|sexta|sábado|domingo",
            "Seg|Ter|Qua|Qui|Sex|Sáb|Dom",
            "janeiro|fevereiro|março|abril|maio|junho|julho|agosto|setembro|outubro|novembro|dezembro",
            "Jan|Fev|Mar|Abr|Mai|Jun|Jul|Ago|Set|Out|Nov|Dez",
        ],
    ),
    (
        "pt_PT",
        [
            "Segunda|Terça|Quarta|Quinta|Sexta|Sábado|Domingo",
            "Seg|Ter|Qua|Qui|Sex|Sáb|Dom",
            "Janeiro|Fevereiro|Março|Abril|Maio|Junho|Julho|Agosto|Setembro|Outubro|Novembro|Dezembro",
            "Jan|Fev|Mar|Abr|Mai|Jun|Jul|Ago|Set|Out|Nov|Dez",
        ],
    ),
    (
        "ro_RO",
        [
            "Luni|Marţi|Miercuri|Joi|Vineri|Sâmbătă|Duminică",
            "Lu|Ma|Mi|Jo|Vi|Sâ|Du",
            "Ianuarie|Februarie|Martie|Aprilie|Mai|Iunie|Iulie|August|Septembrie|Octombrie|Noiembrie|Decembrie",
            "ian|feb|mar|apr|mai|iun|iul|aug|sep|oct|nov|dec",
        ],
    ),
    (
        "ru_RU",
        [
            "Понедельник|Вторник|Среда|Четверг|Пятница|Суббота|Воскресенье",
            "Пнд|Втр|Срд|Чтв|Птн|Сбт|Вск",
            "Января|Февраля|Марта|Апреля|Мая|Июня|Июля|Августа|Сентября|Октября|Ноября|Декабря",
            "Янв|Фев|Мар|Апр|Май|Июн|Июл|Авг|Сен|Окт|Ноя|Дек",
        ],
    ),
    (
        "sk_SK",
        [
            "Pondelok|Utorok|Streda|Štvrtok|Piatok|Sobota|Nedeľa",
            "Po|Ut|St|Št|Pi|So|Ne",
            "január|február|marec|apríl|máj|jún|júl|august|september|október|november|december",
            "jan|feb|mar|apr|máj|jún|júl|aug|sep|okt|nov|dec",
        ],
    ),
    (
        "sl_SI",
        [
            "ponedeljek|torek|sreda|četrtek|petek|sobota|nedelja",
            "pon|tor|sre|čet|pet|sob|ned",
            "januar|februar|marec|april|maj|junij|julij|avgust|september|oktober|november|december",
            "jan|feb|mar|apr|maj|jun|jul|avg|sep|okt|nov|dec",
        ],
    ),
    (
        "sr_RS",
        [
            "ponedeljak|utorak|sreda|četvrtak|petak|subota|nedelja",
            "pon|uto|sre|čet|pet|sub|ned",
            "januar|februar|mart|april|maj|juni|juli|avgust|septembar|oktobar|novembar|decembar",
            "jan|feb|mar|apr|maj|jun|jul|avg|sep|okt|nov|dec",
        ],
    ),
    (
        "th_TH",
        [
            "จันทร์|อังคาร|พุธ|พฤหัสบดี|ศุกร์|เสาร์|อาทิตย์",
            "จ.|อ.|พ.|พฤ.|ศ.|ส.|อา.",
            "มกราคม|กุมภาพันธ์|มีนาคม|เมษายน|พฤษภาคม|มิถุนายน|กรกฎาคม|สิงหาคม|กันยายน|ตุลาคม|พฤศจิกายน|ธันวาคม",
            "ม.ค.|ก.พ.|มี.ค.|เม.ย.|พ.ค.|มิ.ย.|ก.ค.|ส.ค.|ก.ย.|ต.ค.|พ.ย.|ธ.ค.",
        ],
    ),
    (
        "tr_TR",
        [
            "Pazartesi|Salı|Çarşamba|Perşembe|Cuma|Cumartesi|Pazar",
            "Pzt|Sal|Çrş|Prş|Cum|Cts|Paz",
            "Ocak|Şubat|Mart|Nisan|Mayıs|Haziran|Temmuz|Ağustos|Eylül|Ekim|Kasım|Aralık",
            "Oca|Şub|Mar|Nis|May|Haz|Tem|Ağu|Eyl|Eki|Kas|Ara",
        ],
    ),
    (
        "uk_UA",
        [
            "Понеділок|Вівторок|Середа|Четвер|П'ятниця|Субота|Неділя",
            "Пнд|Втр|Срд|Чтв|Птн|Сбт|Ндл",
            "Січень|Лютий|Березень|Квітень|Травень|Червень|Липень|Серпень|Вересень|Жовтень|Листопад|Грудень",
            "Січ|Лют|Бер|Кві|Тра|Чер|Лип|Сер|Вер|Жов|Лис|Гру",
        ],
    ),
    (
        "zh_CN zh_HK",
        [
            "星期一|星期二|星期三|星期四|星期五|星期六|星期日",
            "一|二|三|四|五|六|日",
            "一月|二月|三月|四月|五月|六月|七月|八月|九月|十月|十一月|十二月",
            " 1月| 2月| 3月| 4月| 5月| 6月| 7月| 8月| 9月|10月|11月|12月",
        ],
    ),
    (
        "zh_TW",
        [
            "週一|週二|週三|週四|週五|週六|週日",
            "一|二|三|四|五|六|日",
            "一月|二月|三月|四月|五月|六月|七月|八月|九月|十月|十一月|十二月",
            " 1月| 2月| 3月| 4月| 5月| 6月| 7月| 8月| 9月|10月|11月|12月",
        ],
    ),
    (
        "el_GR",
        [
            "Δευτέρα|Τρίτη|Τετάρτη|Πέμπτη|Παρασκευή|Σάββατο|Κυριακή",
            "Δευ|Τρί|Τετ|Πέμ|Παρ|Σάβ|Κυρ",
            "Ιανουάριος|Φεβρουάριος|Μάρτιος|Απρίλιος|Μάιος|Ιούνιος|Ιούλιος|Αύγουστος|Σεπτέμβριος|Οκτώβριος|Νοέμβριος|Δεκέμβριος",
            "Ιαν|Φεβ|Μάρ|Απρ|Μάι|Ιούν|Ιούλ|Αύγ|Σεπ|Οκτ|Νοέ|Δεκ",
        ],
    ),
    (
        "rm_CH",
        [
            "glindesdi|mardi|mesemna|gievgia|venderdi|sonda|dumengia",
            "gli|ma|me|gie|ve|so|du",
            "schaner|favrer|mars|avrigl|matg|zercladur|fanadur|avust|settember|october|november|december",
            "schan|favr|mars|avr|matg|zercl|fan|avust|sett|oct|nov|dec",
        ],
    ),
];

static BY_LOCALE: LazyLock<HashMap<&'static str, DateNames>> = LazyLock::new(|| {
    let names = NAMES.iter().flat_map(
        |(locales, [weekdays, short_weekdays, months, short_months])| {
            locales.split_ascii_whitespace().map(|locale| {
                let names = DateNames {
                    weekdays: words(weekdays),
                    short_weekdays: words(short_weekdays),
                    months: words(months),
                    short_months: words(short_months),
                };
                (locale, names)
            })
        },
    );
    names.collect()
});

fn words<const COUNT: usize>(text: &'static str) -> [&'static str; COUNT] {
    let mut words = text.split('|');
    from_fn(|_| words.next().unwrap_or_default())
}

/// The locale of this name, as it is spelled.
pub fn locale_named(name: &str) -> Option<&'static str> {
    let mut locales = LOCALES.iter().copied();
    locales.find(|locale| locale.eq_ignore_ascii_case(name))
}

/// The names of a locale, which is spelled as in [`LOCALES`]; `None` of one that has none here.
pub fn date_names(locale: &str) -> Option<&'static DateNames> {
    BY_LOCALE.get(locale)
}

/// The names of a locale, English ones for what has none here.
pub(super) fn date_names_or_english(locale: Option<&str>) -> &'static DateNames {
    static ENGLISH: LazyLock<&DateNames> = LazyLock::new(|| &BY_LOCALE["en_US"]);
    locale.and_then(date_names).unwrap_or(&ENGLISH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_locale_has_a_name_for_each_day_and_month() {
        for (locales, names) in &NAMES {
            let counts =
                names.map(|names| names.split('|').filter(|name| !name.is_empty()).count());
            assert_eq!(counts, [7, 7, 12, 12], "{locales}");
            for locale in locales.split(' ') {
                assert_eq!(locale_named(locale), Some(locale));
            }
        }
    }

    #[test]
    fn numbers_are_those_of_mysql() {
        assert_eq!(
            (LOCALES[4], LOCALES[109], LOCALES.len()),
            ("de_DE", "el_GR", 111)
        );
        assert_eq!(locale_named("DE_de"), Some("de_DE"));
        assert!(locale_named("xx").is_none());
    }
}
