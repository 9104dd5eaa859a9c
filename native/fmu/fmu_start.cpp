// An FMU is started as simulators/fmu/live.py does it, where there is no Python.
#include "fmu/fmu.hpp"

namespace hocket {

namespace {

bool set(Fmu& fmu, const FmuSetting& setting) {
    if (!setting.texts.empty())
        return fmu.put_texts(setting.references, setting.texts, setting.type == Type::binary);
    if (!setting.whole.empty()) return fmu.put_whole(setting.type, setting.references, setting.whole);
    return fmu.put(setting.type, setting.references, setting.values);
}

}  // namespace

bool Fmu::start(const StartTime& when) {
    if (!origin) return true;
    if (!instantiate()) return report_failure(Call::start, 0);
    const auto set_all = [&](const std::vector<FmuSetting>& settings, bool structural) {
        for (const FmuSetting& setting : settings)
            if (setting.structural == structural && !set(*this, setting)) return false;
        return true;
    };
    bool configures = false;
    for (const FmuSetting& setting : origin->settings) configures = configures || setting.structural;
    if (configures && !(configure(true) && set_all(origin->settings, true) && configure(false)))
        return report_failure(Call::start, 0);
    const bool stops = origin->tells_stop && when.ends;
    if (prepare({when.t, stops, when.end, origin->tolerant, origin->tolerance}) &&
        set_all(origin->settings, false) && set_all(more, false) && begin())
        return true;
    return report_failure(Call::start, 0);
}

}  // namespace hocket
