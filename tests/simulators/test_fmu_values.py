"""Parameters of FMUs: what may be set, with what values, and every fault with its words."""

import math

import numpy as np
import pytest

from hocket.errors import ScenarioError
from hocket.simulators.fmu.values import check_settings
from hocket.simulators.fmu.variables import Description, FmuVariable

FIXED = {"causality": "parameter", "variability": "fixed", "initial": "exact"}


def described(*variables, version="3.0"):
    return Description(version, "m", "g", variables)


def parameter(name, kind="real", reference=1, **more):
    return FmuVariable(name, reference, kind, **{**FIXED, **more})


def faults(description, **parameters):
    with pytest.raises(ScenarioError) as caught:
        check_settings(description, parameters, "m.fmu")
    assert all(fault.place.detail == "m.fmu" and fault.place.key for fault in caught.value.faults)
    return [(fault.what, fault.expected or fault.hint) for fault in caught.value.faults]


def value(variable, given):
    (setting,) = check_settings(described(variable), {variable.name: given}).settings
    (found,) = setting.values
    return found


def test_nothing_given():
    assert check_settings(described(parameter("p")), {}).settings == ()


def calls(found):
    """Return what is set by each call."""
    return [(each.stage, each.type, each.references, each.values) for each in found.settings]


def test_settings_come_by_stage_and_type():
    description = described(
        parameter("p", "real", 1),
        parameter("k", "int32", 2),
        parameter("q", "real", 3),
        FmuVariable("n", 4, "uint64", "structuralParameter", "fixed", "exact", 2),
        FmuVariable("u", 5, "real", "input", "continuous", "exact", (0.0, 0.0), dimensions=("n",)),
    )
    given = {"q": 1, "u": [1, 2, 3], "k": 7.0, "p": 2, "n": 3}
    found = check_settings(description, given)
    assert calls(found) == [
        ("structural", "uint64", [4], (3,)),
        ("start", "real", [3, 5, 1], (1.0, 1.0, 2.0, 3.0, 2.0)),
        ("start", "int32", [2], (7,)),
    ]
    assert found.sizes == {"n": 3}
    assert found.starts == {"u[1]": 1.0, "u[2]": 2.0, "u[3]": 3.0}


def test_items_of_fmi_2_are_set_as_integers():
    gear = parameter("gear", "enumeration", items={"up": 1})
    assert check_settings(described(gear, version="2.0"), {"gear": "up"}).settings[0].type == "integer"
    assert check_settings(described(gear), {"gear": "up"}).settings[0].type == "enumeration"


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("real", 1, 1.0),
        ("real", np.float32(0.5), 0.5),
        ("real", math.inf, math.inf),
        ("float32", 1e30, 1e30),
        ("integer", 3, 3),
        ("integer", 3.0, 3),
        ("integer", np.int64(3), 3),
        ("int8", -128, -128),
        ("uint64", 2**64 - 1, 2**64 - 1),
        ("int64", 2**53 + 1, 2**53 + 1),
        ("boolean", True, True),
        ("boolean", np.bool_(False), False),
        ("boolean", 1, True),
        ("string", "äöü", "äöü"),
        ("binary", b"\x01", b"\x01"),
        ("binary", "CA FE", b"\xca\xfe"),
    ],
)
def test_values_that_fit(kind, given, expected):
    found = value(parameter("p", kind), given)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("kind", "given", "what", "expected"),
    [
        ("real", "1", "`p` is '1'", "a number"),
        ("real", True, "`p` is True", "a number"),
        ("real", None, "`p` is None", "a number"),
        ("real", math.nan, "`p` is nan", "a number"),
        ("real", np.float64("nan"), "`p` is nan", "a number"),
        ("real", 1j, "`p` is 1j", "a number"),
        ("real", [1.0], "`p` is [1.0]", "a number"),
        ("float32", 1e39, "`p` is 1e+39", "a number that 32 bits can hold"),
        ("integer", 1.5, "`p` is 1.5", "a whole number"),
        ("integer", True, "`p` is True", "a whole number"),
        ("integer", "3", "`p` is '3'", "a whole number"),
        ("integer", math.inf, "`p` is inf", "a whole number"),
        ("integer", 2**31, "`p` is 2147483648", "-2147483648 to 2147483647, as integer holds"),
        ("int8", 128, "`p` is 128", "-128 to 127, as int8 holds"),
        ("uint8", -1, "`p` is -1", "0 to 255, as uint8 holds"),
        ("uint16", 65536, "`p` is 65536", "0 to 65535, as uint16 holds"),
        ("boolean", "yes", "`p` is 'yes'", "true or false"),
        ("boolean", 2, "`p` is 2", "true or false"),
        ("boolean", 1.0, "`p` is 1.0", "true or false"),
        ("string", 3, "`p` is 3", "a text"),
        ("string", "a\0b", "`p` is 'a\\x00b'", "a text"),
        ("binary", "xyz", "`p` is 'xyz'", "bytes, or text of hexadecimal digits"),
        ("binary", 3, "`p` is 3", "bytes, or text of hexadecimal digits"),
    ],
)
def test_values_of_the_wrong_type(kind, given, what, expected):
    assert faults(described(parameter("p", kind)), p=given) == [(what, expected)]


def test_limits():
    mass = parameter("mass", unit="kg", minimum=0.5, maximum=2.0)
    assert value(mass, 0.5) == 0.5
    assert value(mass, 2) == 2.0
    assert faults(described(mass), mass=0.4) == [("`mass` is 0.4", "at least 0.5 kg")]
    assert faults(described(mass), mass=3) == [("`mass` is 3.0", "at most 2.0 kg")]
    assert faults(described(mass), mass="x") == [("`mass` is 'x'", "a number, in kg")]
    count = parameter("count", "uint8", minimum=1, maximum=9)
    assert faults(described(count), count=10) == [("`count` is 10", "at most 9")]


def test_items():
    gear = parameter("gear", "enumeration", items={"reverse": -1, "neutral": 0, "first": 1})
    assert value(gear, "reverse") == -1
    assert value(gear, 1) == 1
    assert value(gear, 0.0) == 0
    assert faults(described(gear), gear="frist") == [("`gear` has no item `frist`", "did you mean `first`?")]
    listed = "one of reverse (-1), neutral (0), first (1)"
    assert faults(described(gear), gear=7) == [("`gear` is 7", listed)]
    assert faults(described(gear), gear=True) == [("`gear` is True", listed)]
    assert value(parameter("free", "enumeration"), 5) == 5


def test_unknown_names():
    description = described(parameter("mass"), FmuVariable("masses", 2, "real"))
    assert faults(description, mas=1.0) == [("there is no variable `mas`", "a parameter or start value")]
    with pytest.raises(ScenarioError, match="did you mean `mass`"):
        check_settings(description, {"mas": 1.0})


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (("local", "constant", "exact"), "a constant"),
        (("output", "constant", "exact"), "a constant"),
        (("independent", "continuous", None), "the time"),
        (("output", "continuous", "calculated"), "an output that the FMU calculates"),
        (("calculatedParameter", "fixed", "calculated"), "a parameter that the FMU calculates"),
        (("local", "continuous", "calculated"), "a variable that the FMU calculates"),
    ],
)
def test_what_cannot_be_set(facts, reason):
    assert faults(described(FmuVariable("v", 1, "real", *facts)), v=1.0) == [
        (f"`v` cannot be set: it is {reason}", "")
    ]


@pytest.mark.parametrize(
    "facts",
    [
        ("parameter", "fixed", "exact"),
        ("parameter", "tunable", "exact"),
        ("calculatedParameter", "fixed", "approx"),
        ("structuralParameter", "fixed", "exact"),
        ("input", "continuous", "exact"),
        ("input", "discrete", None),
        ("output", "continuous", "exact"),
        ("output", "discrete", "approx"),
        ("local", "continuous", "exact"),
        ("local", "fixed", "approx"),
    ],
)
def test_what_can_be_set(facts):
    assert value(FmuVariable("v", 1, "real", *facts), 1.0) == 1.0


def test_a_clock_cannot_be_set():
    clock = FmuVariable("c", 1, "clock", "input", "discrete", None)
    assert faults(described(clock), c=True) == [("`c` cannot be set: it is a clock", "")]


def matrix(**more):
    facts = {**FIXED, "dimensions": (2, 3), "start": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0), **more}
    return FmuVariable("A", 1, "real", **facts)


def values(variable, **parameters):
    (setting,) = check_settings(described(variable), parameters).settings
    return setting.values


def test_whole_arrays():
    whole = (1.0, 2.0, 3.0, 4.0, 5.0, 7.0)
    assert values(matrix(), A=[[1, 2, 3], [4, 5, 7]]) == whole
    assert values(matrix(), A=np.array([[1, 2, 3], [4, 5, 7]])) == whole
    assert values(matrix(), A=((1, 2, 3), (4, 5, 7))) == whole


def test_elements_are_laid_over_the_start_values():
    assert values(matrix(), **{"A[2,1]": 9}) == (1.0, 2.0, 3.0, 9.0, 5.0, 6.0)
    assert values(matrix(), **{"A[1, 3]": 9}) == (1.0, 2.0, 9.0, 4.0, 5.0, 6.0)
    assert values(matrix(start=(7.0,)), **{"A[1,1]": 9}) == (9.0, 7.0, 7.0, 7.0, 7.0, 7.0)
    assert values(matrix(start=None), **{"A[1,1]": 9}, A=[[0] * 3] * 2) == (9.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    "given", [[1, 2, 3, 4, 5, 6], [[1, 2], [3, 4], [5, 6]], 1.0, [[1, 2, 3], [4, 5]], "ab"]
)
def test_arrays_of_another_shape(given):
    ((what, _),) = faults(described(matrix()), A=given)
    assert what.startswith("`A` has the shape 2 x 3, which ")


def test_wrong_elements():
    assert faults(described(matrix()), **{"A[3,1]": 1}) == [
        ("`A` has no element `A[3,1]`", "indices from 1, shape 2 x 3")
    ]
    assert faults(described(matrix()), **{"A[0,1]": 1})[0][0] == "`A` has no element `A[0,1]`"
    assert faults(described(matrix()), **{"A[1]": 1})[0][0] == "`A` has no element `A[1]`"
    assert faults(described(matrix()), A=[[1, 2, 3], [4, "x", 6]]) == [("`A[2,2]` is 'x'", "a number")]
    assert faults(described(matrix(start=None)), **{"A[1,1]": 1}) == [
        ("`A[1,1]` is set, but the other elements of `A` have no values", "all values of `A`, shape 2 x 3")
    ]


def test_sizes_decide_shapes():
    size = FmuVariable("n", 2, "uint64", "structuralParameter", "fixed", "exact", 2, minimum=1)
    array = FmuVariable("x", 3, "real", **FIXED, start=(1.0, 2.0), dimensions=("n",))
    description = described(array, size)
    assert check_settings(description, {"x": [1, 2, 3], "n": 3}).settings[1].values == (1.0, 2.0, 3.0)
    assert faults(description, x=[1, 2], n=3) == [("`x` has the shape 3, which [1, 2] does not have", "")]
    assert faults(description, n=3, **{"x[1]": 1})[0][0].endswith("the other elements of `x` have no values")
    assert faults(description, n=0) == [("`n` is 0", "at least 1")]


def test_lists_for_the_scalars_of_fmi_2():
    scalars = [parameter(f"x[{n}]", reference=n) for n in (1, 2, 3)]
    description = described(*scalars, version="2.0")
    (setting,) = check_settings(description, {"x": [4, 5, 6]}).settings
    assert (setting.references, setting.values) == ([1, 2, 3], (4.0, 5.0, 6.0))
    assert faults(description, x=[4, 5]) == [("`x` has the shape 3, which [4, 5] does not have", "")]
    assert check_settings(description, {"x[2]": 1}).settings[0].references == [2]
    gap = described(scalars[0], scalars[2], version="2.0")
    assert faults(gap, x=[1, 2, 3]) == [("there is no variable `x[2]`", "")]
    assert faults(description, x=1.0)[0][0] == "there is no variable `x`"


def test_one_variable_with_two_names():
    description = described(parameter("a"), parameter("b"), version="2.0")
    told = "`a` and `b` are one variable with two names, set twice"
    assert faults(description, a=1.0, b=2.0) == [(told, "")]
    assert calls(check_settings(description, {"a": 1.0, "b": 1.0})) == [("start", "real", [1], (1.0,))]


def test_an_alias_sets_its_variable():
    description = described(matrix(), FmuVariable("B", 1, "real", **FIXED, alias_of="A", dimensions=(2, 3)))
    assert check_settings(description, {"B[1,1]": 0}).settings[0].values == (0.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    assert check_settings(description, {"B": [[0] * 3] * 2}).settings[0].values == (0.0,) * 6


def test_a_negated_alias_turns_the_sign():
    assert value(parameter("p", negated=True), 2.0) == -2.0


def test_all_faults_come_at_once():
    description = described(parameter("a"), parameter("b", "int8", 2), FmuVariable("y", 3, "real", "output"))
    assert [what for what, _ in faults(description, a="x", b=1000, c=1, y=2)] == [
        "there is no variable `c`",
        "`y` cannot be set: it is an output that the FMU calculates",
        "`a` is 'x'",
        "`b` is 1000",
    ]
