"""Selectors of devices: what is said of one that is not evaluated, bounds, and where cel-cpp alone would be wrong."""

import time

import pytest

from core.objects import quantity
from core.plugins.dynamicresources import cel_environment, checked_expression
from core.plugins.dynamicresources.selectors import (
    MAX_LENGTH,
    STORED,
    SelectedDevice,
    SelectorError,
    SelectorErrorKind,
    Version,
    compile_selector,
)
from core.releases.release import RELEASES, Release

_LATEST = RELEASES[-1]
_MODEL = 'device.attributes["gpu.example.com"].model'
_GPU = SelectedDevice(
    driver="gpu.example.com",
    attributes={"model": "A100", "numa": 1, "nvlink.io/group": 2, "driverVersion": Version("1.10.0")},
    capacity={"memory": quantity.nanos("40Gi")},
)


def found(expression: str, device: SelectedDevice = _GPU, release: Release = _LATEST) -> bool | SelectorErrorKind:
    try:
        return compile_selector(expression, release).matches(device)
    except SelectorError as error:
        return error.kind


def message(expression: str) -> str:
    with pytest.raises(SelectorError) as caught:
        compile_selector(expression, _LATEST).matches(_GPU)
    return caught.value.message


def test_what_does_not_compile_has_an_error_and_is_not_evaluated() -> None:
    selector = compile_selector("device.driver ==", _LATEST)
    assert selector.error is not None
    assert selector.error.kind is SelectorErrorKind.COMPILE
    with pytest.raises(SelectorError):
        selector.matches(_GPU)


def test_a_list_for_format_may_have_several_types() -> None:
    assert found('"%s-%d".format(["a", 1]) == "a-1"') is True
    assert found('["a", 1].size() == 2') is SelectorErrorKind.COMPILE
    assert found(f'"%s".format([{_MODEL}]) == "A100"') is True
    assert found(f'"%s".format([{_MODEL}]) == "A100"', release=Release(1, 36)) is SelectorErrorKind.COMPILE
    assert found('"%x".format([255]) == "ff"') is SelectorErrorKind.NOT_EVALUATED


def test_an_attribute_that_is_missing_is_an_error_in_the_words_of_cel_go() -> None:
    selector = compile_selector(f'{_MODEL} == "x"', _LATEST)
    assert selector.error is None
    with pytest.raises(SelectorError, match=r"^no such key: model$") as caught:
        selector.matches(SelectedDevice(driver="gpu.example.com"))
    assert caught.value.kind is SelectorErrorKind.RUNTIME


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ('"ab".findAll("b*").size() == 1', "findAll of the regular expression b*"),
        ('"ab".findAll("^a").size() == 1', "findAll of the regular expression ^a"),
        (f'[{_MODEL}, {_MODEL}].max() == "A100"', "max of values of unknown type, or with an offset"),
        ('isURL("https://[::1]/")', 'the URL "https://[::1]/"'),
        ('{"a": 1}.transformMap(k, v, v + 1)["a"] == 2', "the function cel.@mapInsert"),
        ('format.uuid().validate("x").hasValue()', "the function format.uuid"),
        ('[duration("1h")].size() == 1', "a type, null, bytes or a time in a value of list_type"),
        ('duration("1us") > duration("1ns")', "the function duration"),
        ('quantity("1.0").isInteger()', "isInteger of a quantity that may be written as a fraction"),
        (f"{_MODEL}.matches({_MODEL})", "a regular expression that is not a constant"),
        (f'{_MODEL}.matches("(?P<x>a)")', "the regular expression (?P<x>a)"),
    ],
)
def test_what_the_library_lacks_is_named(expression: str, named: str) -> None:
    assert found(expression) is SelectorErrorKind.NOT_EVALUATED
    assert message(expression) == f"selector not evaluated: {named}"


def test_without_the_package_every_selector_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cel_environment, "cel", None)
    cel_environment.environment.cache_clear()
    expression = "device.driver == 'without the package'"
    assert message(expression) == "selector not evaluated: the package cel-expr-python is not installed"


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("true || " * MAX_LENGTH, SelectorErrorKind.NOT_EVALUATED),
        ("(" * 3000 + "true" + ")" * 3000, SelectorErrorKind.NOT_EVALUATED),
        ("+".join(["1"] * 5000) + " == 1", SelectorErrorKind.NOT_EVALUATED),
        ("optional.of(1)" + ".optMap(x, x)" * 500 + ".hasValue()", SelectorErrorKind.NOT_EVALUATED),
        ("[1,2,3,4,5,6,7,8,9].exists(x, " * 8 + "false" + ")" * 8, SelectorErrorKind.COST),
        ("lists.range(100000000).size() == 1", SelectorErrorKind.COST),
        ('"aaaaaaaaaa"' + '.replace("a", "aaaaaaaaaa")' * 9 + ' == "b"', SelectorErrorKind.COST),
        (
            "".join(f"cel.bind(b{i + 1}, b{i} + b{i}, " for i in range(28)).replace("b0", '"a"')
            + 'b28 == "a"'
            + ")" * 28,
            SelectorErrorKind.NOT_EVALUATED,
        ),
        (
            "".join(f"cel.bind(b{i + 1}, b{i} + 1 + 1 + 1, " for i in range(20)).replace("b0", "1")
            + "b20 == 1"
            + ")" * 20,
            SelectorErrorKind.NOT_EVALUATED,
        ),
    ],
    ids=["long", "parentheses", "sum", "doubled", "loops", "range", "replaced", "bindings", "deep"],
)
def test_a_hostile_selector_ends_soon_without_a_verdict(expression: str, kind: SelectorErrorKind) -> None:
    started = time.process_time()
    assert found(expression) is kind
    assert time.process_time() - started < 0.5


def test_a_part_of_an_expression_has_only_what_is_said_of_it() -> None:
    """Each call of a function is a part, so that the whole for each of them would take quadratic time."""
    compiled = cel_environment.runtime().environment.compile("'a' + 'b' == 'c' || 1 + 2 == 3")
    checked = checked_expression.decoded(compiled.serialize())
    part = checked_expression.parts_of(checked)(checked.expr.call_expr.args[0])
    assert (len(checked.type_map), len(part.type_map), len(part.reference_map)) == (11, 5, 2)
    program = cel_environment.runtime().environment.deserialize(checked_expression.encoded(part))
    assert program.eval(data={}).plain_value() is False


def test_a_selector_of_ten_kilobytes_is_evaluated() -> None:
    names = ", ".join(f'"model-{number}"' for number in range(700))
    assert found(f'!({_MODEL} in [{names}]) && {_MODEL} in [{names}, "A100"]') is SelectorErrorKind.NOT_EVALUATED
    assert found(f'{_MODEL} in [{names}, "A100"]') is True


def test_selectors_are_compiled_once_and_kept_up_to_a_length() -> None:
    first = compile_selector("device.driver == 'kept'", _LATEST)
    assert compile_selector("device.driver == 'kept'", _LATEST) is first
    assert compile_selector("device.driver == 'kept'", Release(1, 36)) is not first
    for number in range(STORED // MAX_LENGTH + 2):
        compile_selector(f"{number} ==" + " " * (MAX_LENGTH - 20), _LATEST)
    assert compile_selector("device.driver == 'kept'", _LATEST) is not first


def test_a_domain_that_the_device_lacks_is_an_empty_map_but_is_not_in_the_attributes() -> None:
    assert found('has(device.attributes["none"].x)') is False
    assert found('device.attributes["none"].x') is SelectorErrorKind.RUNTIME
    assert found('!("none" in device.attributes) && !has(device.attributes["none"].x)') is True
    assert found('device.attributes["none"].size() == 0 && device.attributes.size() == 2') is True
    assert found("device.attributes[device.driver].size() == 0", SelectedDevice(driver="x")) is True


def test_a_binding_is_not_the_variable_of_a_loop_that_ended_before() -> None:
    assert found('["a", "b"].all(x, false) || cel.bind(z, 5, z == 5)') is True


@pytest.mark.parametrize(
    "value",
    ['["a", 1].size()', '"%d".format(["a"])', '"a".matches("(")', 'int("a")'],
    ids=["types", "format", "pattern", "conversion"],
)
def test_a_value_that_no_name_uses_is_checked_as_in_cel_go(value: str) -> None:
    assert found(f"cel.bind(x, {value}, true)") in (SelectorErrorKind.COMPILE, SelectorErrorKind.NOT_EVALUATED)
    assert found("cel.bind(x, 1 / 0, true)") is True


@pytest.mark.parametrize(
    ("expression", "literal"),
    [
        ('cel.bind(x, "a", int(x) == 1)', 'int("a") == 1'),
        ('cel.bind(x, "(", "a".matches(x))', '"a".matches("(")'),
        ('cel.bind(x, "a", duration(x) == duration("1s"))', 'duration("a") == duration("1s")'),
    ],
)
def test_a_name_for_a_literal_is_none_when_cel_go_compiles(expression: str, literal: str) -> None:
    assert found(f"true || {expression}") is SelectorErrorKind.NOT_EVALUATED  # true in cel-go
    assert found(f"true || {literal}") is SelectorErrorKind.COMPILE


@pytest.mark.parametrize(
    "expression",
    ['bool(string("a"))', 'int(dyn("a")) == 1', r'string(b"\xff") == "a"'],
)
def test_a_conversion_of_literals_that_is_an_error_does_not_compile(expression: str) -> None:
    kinds = (SelectorErrorKind.COMPILE, SelectorErrorKind.NOT_EVALUATED)
    assert found(f"true || {expression}") in kinds  # cel-go does not compile it, and cel-cpp says true
    assert found('string(b"a") == string(string("a"))') is True


def test_a_list_is_no_key_of_a_map() -> None:
    device = SelectedDevice(driver="gpu.example.com", attributes={"list": (1, 2), "model": "model"})
    for container in ("device.attributes", "device.capacity", 'device.attributes["gpu.example.com"]', '{"a": 1}'):
        assert found(f'device.attributes["gpu.example.com"].list in {container}', device) is False
    assert found(f'{_MODEL} in device.attributes["gpu.example.com"]', device) is True


@pytest.mark.parametrize(
    "expression",
    [
        f"{_MODEL}.reverse().isSorted()",  # the checker takes the elements for ints: an error in cel-go
        f"{_MODEL}.slice(0, 1).sum() == 1",
        f'"a" in [{_MODEL}].sortBy(e, e).transformList(i, v, i)',  # does not compile in cel-go
        "[1].exists_one(i, v, v == 1)",  # true
        'quantity("1Pi").isGreaterThan(quantity("1Pi").sub(1))',  # false until 1.36 if it is of one capacity
    ],
)
def test_what_the_checkers_take_for_different_things_is_not_evaluated(expression: str) -> None:
    device = SelectedDevice(driver="gpu.example.com", attributes={"model": ("b", "a")})
    assert found(expression, device) is SelectorErrorKind.NOT_EVALUATED


def test_a_function_whose_result_is_missing_is_called_before_another_error_counts() -> None:
    # cel-go: false, because the right operand is. cel-cpp alone reports the left one, while the result is missing.
    assert found(f'device.attributes["none"].x && isSemver({_MODEL})') is False
    assert found(f'device.attributes["none"].x || isSemver({_MODEL})') is SelectorErrorKind.RUNTIME


def test_a_result_of_a_function_is_kept_for_the_next_device() -> None:
    selector = compile_selector(f'isSemver({_MODEL}) || {_MODEL} == "B200"', _LATEST)
    for model, expected in (("1.2.3", True), ("A100", False), ("B200", True), ("1.2.3", True)):
        assert selector.matches(SelectedDevice("gpu.example.com", {"model": model})) is expected


def test_versions_are_ordered_by_numbers_and_a_prerelease_is_before_its_release() -> None:
    version = 'device.attributes["gpu.example.com"].driverVersion'
    assert found(f'{version}.isGreaterThan(semver("1.9.0"))') is True
    assert found(f'{version}.compareTo(semver("1.10.0-rc.1")) > 0 && {version} == semver("1.10.0+build")') is True
    assert found(
        f'{version}.isLessThan(semver("2.0.0"))', SelectedDevice("gpu.example.com", {"driverVersion": "1.0.0"})
    ) is (SelectorErrorKind.RUNTIME)


def test_a_version_that_is_compared_with_a_text_is_an_error_as_in_cel_go() -> None:
    version = 'device.attributes["gpu.example.com"].driverVersion'
    assert found(f'{version} == "1.10.0"') is SelectorErrorKind.RUNTIME
    assert found(f'"1.10.0" == {version}') is False
    assert found(f'{version} != "1.10.0"') is True
    assert found(f'{_MODEL} == "A100"') is True  # the same device, another attribute


def test_a_version_among_elements_is_not_compared_and_others_are() -> None:
    version = 'device.attributes["gpu.example.com"].driverVersion'
    assert found(f'sets.contains(["A100", "H100"], [{_MODEL}])') is True
    assert found(f'sets.contains(["A100", "H100"], [{version}])') is SelectorErrorKind.NOT_EVALUATED
    assert found('device.attributes["none"].x in ["a"] || true') is True
    assert found(f'{version} in ["a"] || true') is SelectorErrorKind.NOT_EVALUATED
    assert found(f'{version} in [semver("1.9.0"), semver("1.10.0")]') is True
    assert found(f'["A100", "T4"].indexOf({_MODEL}) == 0 && ["1.10.0"].indexOf({version}) == -1') is True


def test_an_operand_of_a_template_that_is_an_error_is_one() -> None:
    assert found('["a"].filter(x, false).indexOf(device.attributes["none"].x) == -1') is SelectorErrorKind.RUNTIME
    assert found('[1].indexOf("a") == -1') is SelectorErrorKind.COMPILE
    assert found("[1].filter(x, false).max() == 1") is SelectorErrorKind.RUNTIME


def test_an_integer_is_what_was_not_written_as_a_fraction() -> None:
    memory = 'device.capacity["gpu.example.com"].memory'
    assert found(f'{memory}.add(quantity("1Gi")).asInteger() == 41 * 1024 * 1024 * 1024') is True
    assert found(f'{memory}.sub(quantity("500m")).add(quantity("500m")).isInteger()') is SelectorErrorKind.NOT_EVALUATED
    assert found('quantity("500m").isInteger()') is False
    assert found(f"{memory}.asApproximateFloat() > 1.0") is True


def test_a_field_of_the_device_is_there_and_a_text_about_it_is_none() -> None:
    assert found("has(device.allowMultipleAllocations) && !device.allowMultipleAllocations") is True
    assert found('"has(device.driver)".size() == 18') is True
    assert found('has(device.driver) && "has(device.driver)".size() == 18') is SelectorErrorKind.NOT_EVALUATED
    assert found("has(device)") is SelectorErrorKind.COMPILE


def test_quantities_beyond_an_int64_are_compared_exactly() -> None:
    large = SelectedDevice("gpu.example.com", {}, {"memory": quantity.nanos("9e30")})
    memory = 'device.capacity["gpu.example.com"].memory'
    assert found(f'{memory}.isGreaterThan(quantity("8999999999999999999999999999999"))', large) is True
    assert found(f'{memory}.compareTo(quantity("9e30")) == 0', large) is True
    assert found(f'{memory}.sub(quantity("39Gi")).compareTo(quantity("1Gi")) == 0') is True


def test_lists_are_attributes_since_1_37() -> None:
    device = SelectedDevice("gpu.example.com", {"models": ("A100", "H100")})
    expression = 'device.attributes["gpu.example.com"].models.exists(m, m == "H100")'
    assert found(expression, device) is True
    assert found(expression, device, Release(1, 36)) is SelectorErrorKind.COMPILE
    assert found("true", device, Release(1, 36)) is SelectorErrorKind.RUNTIME
    assert found(f'{_MODEL}.includes("A100")', release=Release(1, 36)) is True
    assert found(f'{_MODEL}.includes("A100")', release=Release(1, 35)) is SelectorErrorKind.COMPILE


def test_an_attribute_of_an_unknown_kind_is_an_error_of_every_selector() -> None:
    assert found("true", SelectedDevice("gpu.example.com", {"odd": None})) is SelectorErrorKind.RUNTIME
    assert found("true", SelectedDevice("gpu.example.com", {"v": Version("1.2")})) is SelectorErrorKind.RUNTIME
