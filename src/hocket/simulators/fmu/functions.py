"""The functions that FMI wants in a binary, by name.

In:  the major version of FMI
Out: names, those of FMI 1 without the prefix of the model
"""

from __future__ import annotations

STATE: dict[int, tuple[str, ...]] = {
    1: (),
    2: ("fmi2GetFMUstate", "fmi2SetFMUstate", "fmi2FreeFMUstate"),
    3: ("fmi3GetFMUState", "fmi3SetFMUState", "fmi3FreeFMUState"),
}
INPUT_SLOPES: dict[int, tuple[str, ...]] = {
    1: ("fmiSetRealInputDerivatives",),
    2: ("fmi2SetRealInputDerivatives",),
    3: (),
}
OUTPUT_SLOPES = {
    1: "fmiGetRealOutputDerivatives",
    2: "fmi2GetRealOutputDerivatives",
    3: "fmi3GetOutputDerivatives",
}
DIRECTIONAL = {2: "fmi2GetDirectionalDerivative", 3: "fmi3GetDirectionalDerivative"}

_TYPES = {
    1: "Real Integer Boolean String",
    2: "Real Integer Boolean String",
    3: "Float32 Float64 Int8 UInt8 Int16 UInt16 Int32 UInt32 Int64 UInt64 Boolean String Binary Clock",
}
_INITIAL = "FreeInstance Terminate Reset EnterInitializationMode ExitInitializationMode"
_STATUS = "GetStatus GetRealStatus GetIntegerStatus GetBooleanStatus GetStringStatus"
_SLOPES = "SetRealInputDerivatives GetRealOutputDerivatives"
_SOLVING = (
    "SetTime SetContinuousStates GetContinuousStates GetEventIndicators GetNominalsOfContinuousStates "
    "EnterContinuousTimeMode CompletedIntegratorStep"
)
_ALWAYS = {
    1: "GetVersion SetDebugLogging GetTypesPlatform",
    2: f"GetVersion SetDebugLogging GetTypesPlatform Instantiate SetupExperiment {_INITIAL} "
    "GetFMUstate SetFMUstate FreeFMUstate SerializedFMUstateSize SerializeFMUstate DeSerializeFMUstate "
    "GetDirectionalDerivative",
    3: f"GetVersion SetDebugLogging {_INITIAL} EnterEventMode EvaluateDiscreteStates UpdateDiscreteStates "
    "GetFMUState SetFMUState FreeFMUState SerializedFMUStateSize SerializeFMUState DeserializeFMUState "
    "GetDirectionalDerivative GetAdjointDerivative EnterConfigurationMode ExitConfigurationMode "
    "GetNumberOfVariableDependencies GetVariableDependencies GetIntervalDecimal GetIntervalFraction "
    "SetIntervalDecimal SetIntervalFraction GetShiftDecimal GetShiftFraction SetShiftDecimal "
    "SetShiftFraction",
}
_STEPPING = {
    1: f"InstantiateSlave InitializeSlave TerminateSlave ResetSlave FreeSlaveInstance DoStep CancelStep "
    f"{_SLOPES} {_STATUS}",
    2: f"DoStep CancelStep {_SLOPES} {_STATUS}",
    3: "InstantiateCoSimulation EnterStepMode DoStep GetOutputDerivatives",
}
_EXCHANGE = {
    2: f"EnterEventMode NewDiscreteStates GetDerivatives {_SOLVING}",
    3: f"InstantiateModelExchange GetContinuousStateDerivatives GetNumberOfEventIndicators "
    f"GetNumberOfContinuousStates {_SOLVING}",
}


def required_functions(major: int, exchange: bool) -> list[str]:
    """Return the functions that FMI wants in a binary."""
    access = [f"{verb}{kind}" for verb in ("Get", "Set") for kind in _TYPES[major].split()]
    own = (_EXCHANGE if exchange else _STEPPING)[major]
    prefix = "fmi" if major == 1 else f"fmi{major}"
    return [prefix + name for name in (*_ALWAYS[major].split(), *own.split(), *access)]
