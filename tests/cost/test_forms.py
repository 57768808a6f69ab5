"""The forms: each makes an attack of the requested size, the same each time."""

from tests.cost.forms import ALL, FORMS

_FIXED = {"ordinary", "explain-adding-nodes", "explain-removing"}  # their number of elements is limited


def test_a_form_is_about_as_large_as_asked_and_the_same_each_time() -> None:
    assert len(ALL) == len(FORMS), "a name is taken twice"
    for name, form in FORMS.items():
        assert form.attack(4096) == form.attack(4096)
        for size in () if form.way in ("wire", "waiting") or name in _FIXED else (8 * 1024, 64 * 1024):
            assert 0.6 * size < form.attack(size).size < 1.1 * size, name
