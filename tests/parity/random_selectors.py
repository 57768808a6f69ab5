"""Random CEL selectors of devices: what drivers' users write, every library of the environment, and errors at run time.

The environment is upstream's staging/src/k8s.io/dynamic-resource-allocation/cel/compile.go. A selector that the API
server would refuse, because it does not compile, is rare.
"""

from random import Random
from typing import TYPE_CHECKING, Final

from tests.parity.random_nodes import V1

if TYPE_CHECKING:
    from collections.abc import Sequence

GPU: Final = "gpu.example.com"
NIC: Final = "nic.example.com"
FPGA: Final = "fpga.acme.io"
DRIVERS: Final = (GPU, NIC, FPGA)
MODELS: Final = ("A100", "H100", "T4", "L40S")
VERSIONS: Final = ("1.2.3", "1.10.0", "2.0.0", "2.0.0-rc.1", "2.1.0+build.5", "0.9.9")
MEMORY: Final = ("16Gi", "24Gi", "40Gi", "40000Mi", "80Gi", "100000000k")

_A: Final = f'device.attributes["{GPU}"]'
_C: Final = f'device.capacity["{GPU}"]'
_ROOT: Final = 'device.attributes["resource.kubernetes.io"]'

_COMMON: Final = (
    'device.driver == "{driver}"',
    'device.driver.endsWith("example.com")',
    'device.driver in ["{driver}", "x"]',
    "true",
    "!false && {number} < 2",
    'has(device.attributes["{driver}"].numa)',
    '"numa" in device.attributes["{driver}"]',
    'device.attributes["{driver}"].?numa.orValue(0) == {bit}',
    'device.attributes["{driver}"][?"numa"].hasValue()',
    'device.attributes["{driver}"].?numa.optMap(n, n + 1).orValue(9) == {number}',
    'optional.of("{model}").value() == "{model}"',
    "optional.none().or(optional.of({number})).orValue(1) == {number}",
    f'{_ROOT}.?pcieRoot.orValue("") == "pci0000:0{{bit}}"',
    '"nvlink.io" in device.attributes',
    'device.attributes["nvlink.io"].?group.orValue(0) == {number}',
    "size(device.attributes) > {number}",
    'device.attributes.exists(domain, domain == "nvlink.io")',
    'device.attributes["{driver}"].all(name, name != "index")',
    '[1, 2, 3].exists(n, n == {number}) ? device.driver == "{driver}" : true',
    '["a", "b"].map(x, x + "{bit}").join("-") == "a0-b0"',
    '"a,b,c".split(",").size() == 3 && "{model}".charAt(0) == "T"',
    "[3, 1, 2].isSorted() || [1, 2].sum() == 3",
    "[1, {number}, 2].max() == 2 && [1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2",
    "sets.contains([1, 2, 3], [{number}]) && !sets.intersects([1], [2])",
    "sets.equivalent([1, 2], [2, 1, 1])",
    '"{model}".matches("^[AH][0-9]+$")',
    '"{model}0".find("[0-9]+") == "100" || "a1b22".findAll("[0-9]+").size() == 2',
    'url("https://example.com:80/a?b=c").getHost() == "example.com:80" && isURL("https://a/b")',
    'ip("10.0.0.{number}").family() == 4 && isIP("::1") && ip("127.0.0.1").isLoopback()',
    'cidr("10.0.0.0/24").containsIP("10.0.{bit}.1") && isCIDR("10.0.0.0/8")',
    '"%s-%d".format(["{model}", {number}]) == "T4-1"',
    '{{"a": 1, "b": 2}}.all(k, v, k != "c" && v > 0)',
    "[1, 2, 3].exists(i, v, i == v - 1)",
    '{{"a": 1}}.transformMap(k, v, v + 1)["a"] == 2',
    "[1, 2].transformList(i, v, i * v)[1] == 2",
    'cel.bind(d, device.driver, d == "{driver}" || d == "x")',
    'quantity("{memory}").isGreaterThan(quantity("40Gi")) && isQuantity("1.5")',
    'quantity("{memory}").add(1).sub(quantity("1")).asInteger() > 0',
    'semver("{version}").major() == 2 || isSemver("v1", true)',
    'semver("{version}").isLessThan(semver("1.10.0"))',
    'type({number}) == int && string({number}) + "" == "1"',
    'duration("1h") > duration("{number}m") && timestamp("2024-01-01T00:00:00Z").getFullYear() == 2024',
    'dyn({number}) != "x"',
    'b"abc".size() == 3 && bytes("ä").size() == 2',
    "int(1.9) == 1 && uint(2) == 2u && double({number}) < 1.5",
    "5 / 2 == 2 && -5 % 3 == -2 && {number} * 3 <= 3",
)
_OF_GPUS: Final = (
    f'{_A}.model == "{{model}}"',
    f'{_A}["model"] != "{{model}}"',
    f'{_A}.model in ["{{model}}", "H100"]',
    f'{_A}.model.startsWith("{{letter}}") || {_A}.model.lowerAscii() == "t4"',
    f'{_A}.model.substring(1) == "100" || {_A}.model.replace("A", "H") == "H100"',
    f"{_A}.numa == {{bit}} && {_A}.healthy",
    f"{_A}.numa * 2 - 1 > 0 || double({_A}.numa) < 0.5",
    f'string({_A}.numa) + "-" + {_A}.model == "1-{{model}}"',
    f'{_A}.driverVersion.isGreaterThan(semver("{{version}}"))',
    f'{_A}.driverVersion.compareTo(semver("{{version}}")) >= 0',
    f'{_A}.driverVersion == semver("{{version}}") || {_A}.driverVersion.minor() == 10',
    f'{_C}.memory.compareTo(quantity("{{memory}}")) >= 0',
    f'{_C}["memory"].isLessThan(quantity("{{memory}}"))',
    f"{_C}.cores.isInteger() && {_C}.cores.asInteger() >= 64",
    f'{_C}.cores.compareTo(quantity("{{number}}4")) > 0',
    f'sign({_C}.memory.sub(quantity("{{memory}}"))) >= 0',
    f'has({_C}.cores) && "memory" in {_C}',
    f'cel.bind(gpu, {_A}, gpu.model == "{{model}}" || gpu.numa == 1)',
    "device.allowMultipleAllocations",
    f'device.allowMultipleAllocations == false && {_A}.model == "{{model}}"',
    f"!has({_A}.index) || {_A}.index > {{number}}",
    f'{{{{"A100": 1, "H100": 2}}}}[{_A}.model in ["A100", "H100"] ? {_A}.model : "A100"] == 2',
    f'["A100", "H100"].exists_one(m, m == {_A}.model)',
    f'["A100", "H100", "T4"].filter(m, m != "T4").exists(m, m == {_A}.model)',
    f'{_A}.type == "{{partition}}"',
)
_OFTEN_ERRORS: Final = (
    f"{_A}.index == {{number}}",
    f'{_A}.index == 1 || {_A}.model == "{{model}}"',
    f"{_A}.healthy && {_A}.index > 0",
    f"{_A}.numa == 0 ? true : {_A}.index > 0",
    f"int({_A}.model) == 1 || {_A}.numa == 0",
    f"semver({_A}.model).major() == 1",
    f'["a"][{_A}.numa] == "a"',
    f"1 / {_A}.numa == 1",
    f"9223372036854775807 + {_A}.numa > 0",
    f"quantity({_A}.model).isInteger()",
    f'{_A}.numa == "x"',
    f"{_A}.model",
    'device.attributes["nvlink.io"].group == {number}',
    f'{_ROOT}.pcieRoot.endsWith("0")',
    'device.attributes["{driver}"].speed >= 100',
    f'{_C}.bandwidth.isGreaterThan(quantity("1G"))',
    "optional.none().value() == 1",
    f'{_A}.healthy.startsWith("x")',
)
_NOT_COMPILING: Final = (
    'device.foo == "x"',
    "device.driver ==",
    '"text"',
    "nope(1)",
    "math.greatest(1, 2) == 2",
    "device.driver == 1",
    "x.all(y, y)",
)


def selectors(random: Random, driver: str, *, many: float = 0.25, errors: float = 0.15) -> list[V1]:
    """Return the selectors of a request or a class: mostly none or one. `errors`: the share that may fail."""
    count = random.choice((0, 0, 0, 1)) if random.random() > many else random.choice((1, 1, 2))
    return [selector(random, driver, errors) for _ in range(count)]


def selector(random: Random, driver: str, errors: float) -> V1:
    """Return one selector."""
    forms: Sequence[str] = (*_COMMON, *_OF_GPUS) if driver == GPU else _COMMON
    if driver == GPU and random.random() < 0.5:
        forms = _OF_GPUS
    if random.random() < errors:
        forms = _OFTEN_ERRORS
    if random.random() < 0.01:
        forms = _NOT_COMPILING
    text = _filled(random, random.choice(forms), driver)
    if random.random() < 0.15:
        other = _filled(random, random.choice(forms), driver)
        text = random.choice((f"({text}) && ({other})", f"({text}) || ({other})", f"!({text})"))
    return {"cel": {"expression": text}}


def with_other_selectors(random: Random, case: V1) -> V1:
    """Return a golden case in which some requests and classes have a random selector instead of theirs."""
    requests = [
        one
        for claim in case["resourceclaims"]
        for request in claim.get("spec", {}).get("devices", {}).get("requests", ())
        for one in (request.get("exactly"), *request.get("firstAvailable", ()))
        if one
    ]
    for each in (*requests, *(one.get("spec", {}) for one in case["deviceclasses"])):
        if random.random() < 0.15:
            each["selectors"] = [selector(random, GPU, 0.15)]
    return case


def _filled(random: Random, form: str, driver: str) -> str:
    if form in _NOT_COMPILING:
        return form
    return form.format(
        driver=driver,
        model=random.choice(MODELS),
        letter=random.choice("AHTL"),
        version=random.choice(VERSIONS),
        memory=random.choice(MEMORY),
        partition=random.choice(("gpu", "mig")),
        number=random.choice((0, 1, 2, 3)),
        bit=random.choice((0, 1)),
    )
