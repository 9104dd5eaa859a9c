#include "export/plan_file.hpp"

#include <array>
#include <cctype>
#include <cstring>
#include <map>
#include <stdexcept>
#include <type_traits>

#include "engine/byte_stream.hpp"
#include "export/plan_parts.hpp"

namespace hocket {

template <class Line> void list(Line& line, Variable& it) {
    line(it.kind, it.type, it.level, it.child, it.port, it.start, it.code);
}
template <class Line> void list(Line& line, LevelNames& it) { line(it.children, it.outputs); }
template <class Line> void list(Line& line, PlanFace& it) {
    line(it.name, it.token, it.variables, it.names, it.step, it.adaptive);
}

namespace {

constexpr char magic[] = "hocket plan\n";
constexpr int deepest = 1000;  // levels and bodies inside each other

enum class SimulatorKind : std::uint8_t { block, fmu };

// FNV-1a: it finds damage, it does not keep anybody from changing a file.
std::uint64_t checksum(const char* bytes, std::size_t size) {
    std::uint64_t sum = 0xcbf29ce484222325;
    for (std::size_t k = 0; k < size; ++k) sum = (sum ^ static_cast<unsigned char>(bytes[k])) * 0x100000001b3;
    return sum;
}

// The URI of a path.
std::string uri_of(const std::string& path) {
    constexpr char digits[] = "0123456789ABCDEF";
    std::string uri = "file://";
    for (const char c : path) {
        const auto byte = static_cast<unsigned char>(c);
        if (std::isalnum(byte) || std::strchr("/-._~", c)) {
            uri += c;
        } else {
            uri += '%';
            uri += digits[byte / 16];
            uri += digits[byte % 16];
        }
    }
    return uri;
}

class PlanWriter {
  public:
    explicit PlanWriter(std::string& to) : to_(to) {}

    template <class... Fields> void operator()(Fields&... fields) { (put(fields), ...); }

  private:
    template <class T> void put(T& it) {
        if constexpr (std::is_same_v<T, bool>)
            to_.put(static_cast<std::uint8_t>(it));
        else if constexpr (std::is_enum_v<T>)
            to_.put(static_cast<std::int32_t>(it));
        else if constexpr (std::is_arithmetic_v<T>)
            to_.put(it);
        else
            list(*this, it);
    }
    void put(std::string& it) { to_.put(it); }
    template <class T> void put(std::vector<T>& it) {
        if constexpr (std::is_arithmetic_v<T>) {
            to_.put(it);
        } else {
            to_.put(static_cast<std::uint64_t>(it.size()));
            for (T& each : it) put(each);
        }
    }
    void put(std::vector<bool>& it) {
        std::vector<std::uint8_t> flags(it.begin(), it.end());
        to_.put(flags);
    }
    void put(std::shared_ptr<const ExchangeSetup>& it) {
        std::uint8_t there = it != nullptr;
        to_.put(there);
        if (there) put(const_cast<ExchangeSetup&>(*it));
    }
    template <class T, std::size_t size> void put(std::array<T, size>& it) {
        for (T& each : it) put(each);
    }
    template <class A, class B> void put(std::pair<A, B>& it) {
        put(it.first);
        put(it.second);
    }
    template <class T> void put(std::unique_ptr<T>& it) { put(*it); }
    // Models are shared: each is written once.
    void put(std::shared_ptr<Linear>& it) { put_shared(it.get()); }
    void put(std::shared_ptr<const Linear>& it) { put_shared(const_cast<Linear*>(it.get())); }
    void put_shared(Linear* model) {
        if (model->ask) throw std::invalid_argument("a linear model whose steps have any length");
        const auto [place, fresh] = known_.emplace(model, static_cast<std::uint32_t>(known_.size()));
        to_.put(place->second);
        if (fresh) put(*model);
    }
    void put(std::shared_ptr<Accelerator>& it) {
        std::uint8_t there = it != nullptr;
        to_.put(there);
        if (!there) return;
        AcceleratorSetup setup = it->setup();
        put(setup);
    }
    void put(std::shared_ptr<StepSizeController>& it) { put(*it); }
    template <class... Kinds> void put(std::variant<Kinds...>& it) {
        to_.put(static_cast<std::uint8_t>(it.index()));
        std::visit([this](auto& each) { put(each); }, it);
    }
    void put(Operation& it) { put(static_cast<AnyOperation&>(it)); }
    void put(SimulatorPart& it) {
        (*this)(it.rows, it.inputs, it.outputs);
        if (auto* block = dynamic_cast<Block*>(it.simulator.get())) {
            to_.put(static_cast<std::uint8_t>(SimulatorKind::block));
            Block::Setup setup = block->setup();
            put(setup);
            return;
        }
        if (auto* fmu = dynamic_cast<Fmu*>(it.simulator.get()); fmu && fmu->origin) {
            to_.put(static_cast<std::uint8_t>(SimulatorKind::fmu));
            FmuOrigin origin = *fmu->origin;
            Setup setup = fmu->setup;
            (*this)(origin, setup);
            return;
        }
        throw std::invalid_argument("a simulator that cannot be written down");
    }
    void put(LevelPart& it) {
        (*this)(it.rows, it.inputs, it.outputs);
        put(it.builder);
    }
    void put(SampledPart&) { throw std::invalid_argument("a condensed level"); }
    void put(ProjectedPart&) { throw std::invalid_argument("a simulator that agrees on energies"); }

  public:
    void put(std::shared_ptr<LevelBuilder>& it) {
        put(it->head);
        put(it->parts);
    }

  private:
    ByteWriter to_;
    std::map<const Linear*, std::uint32_t> known_;
};

class PlanReader {
  public:
    PlanReader(const std::string& from, const Surroundings& around) : from_(from), around_(around) {}

    template <class... Fields> void operator()(Fields&... fields) { (get(fields), ...); }
    bool finished() const { return from_.finished(); }

  private:
    [[noreturn]] static void refuse() { throw std::invalid_argument("it is damaged"); }
    void check() const {
        if (!from_.good()) refuse();
    }
    template <class T> void get(T& it) {
        if constexpr (std::is_enum_v<T>) {
            std::int32_t value = 0;
            from_.get(value);
            it = static_cast<T>(value);
        } else if constexpr (std::is_arithmetic_v<T>) {
            from_.get(it);
        } else {
            list(*this, it);
        }
        check();
    }
    void get(std::string& it) {
        from_.get(it);
        check();
    }
    template <class T> void get(std::vector<T>& it) {
        if constexpr (std::is_arithmetic_v<T>) {
            from_.get(it);
            check();
        } else {
            const std::size_t size = from_.get_size(1);
            check();
            it.clear();
            for (std::size_t k = 0; k < size; ++k) get(it.emplace_back());
        }
    }
    void get(std::vector<bool>& it) {
        std::vector<std::uint8_t> flags;
        get(flags);
        it.assign(flags.begin(), flags.end());
    }
    void get(std::shared_ptr<const ExchangeSetup>& it) {
        std::uint8_t there = 0;
        get(there);
        if (there == 0) return;
        auto made = std::make_shared<ExchangeSetup>();
        get(*made);
        it = std::move(made);
    }
    template <class T, std::size_t size> void get(std::array<T, size>& it) {
        for (T& each : it) get(each);
    }
    template <class A, class B> void get(std::pair<A, B>& it) {
        get(it.first);
        get(it.second);
    }
    template <class T> void get(std::unique_ptr<T>& it) {
        it = std::make_unique<T>();
        get(*it);
    }
    void get(std::shared_ptr<Linear>& it) { it = get_shared(); }
    void get(std::shared_ptr<const Linear>& it) { it = get_shared(); }
    std::shared_ptr<Linear> get_shared() {
        std::uint32_t number = 0;
        get(number);
        if (number < known_.size()) return known_[number];
        if (number > known_.size()) refuse();
        known_.push_back(std::make_shared<Linear>());
        const std::shared_ptr<Linear> made = known_.back();
        get(*made);
        if (made->lengths.empty()) refuse();
        return made;
    }
    void get(std::shared_ptr<Accelerator>& it) {
        std::uint8_t there = 0;
        get(there);
        if (there == 0) return;
        AcceleratorSetup setup;
        get(setup);
        it = make_accelerator(setup);
    }
    void get(std::shared_ptr<StepSizeController>& it) {
        it = std::make_shared<StepSizeController>();
        get(*it);
    }
    template <class... Kinds> void get(std::variant<Kinds...>& it) {
        std::uint8_t index = 0;
        get(index);
        if (++deep_ > deepest) refuse();
        std::uint8_t number = 0;
        const bool found = ((number++ == index && (get(it.template emplace<Kinds>()), true)) || ...);
        if (!found) refuse();
        --deep_;
    }
    void get(Operation& it) { get(static_cast<AnyOperation&>(it)); }
    void get(SimulatorPart& it) {
        (*this)(it.rows, it.inputs, it.outputs);
        std::uint8_t kind = 0;
        get(kind);
        if (kind == static_cast<std::uint8_t>(SimulatorKind::fmu)) {
            it.simulator = get_fmu();
            return;
        }
        if (kind != static_cast<std::uint8_t>(SimulatorKind::block)) refuse();
        Block::Setup setup;
        get(setup);
        for (const Formulas* each : {&setup.advance, &setup.show, &setup.next, &setup.react})
            if (!each->is_whole()) refuse();
        it.simulator = std::make_shared<Block>(std::move(setup));
    }
    // Loads the library; the FMU is instantiated when it is started.
    std::shared_ptr<Fmu> get_fmu() {
        auto origin = std::make_shared<FmuOrigin>();
        Setup setup;
        (*this)(*origin, setup);
        const std::string folder = around_.resources + "/" + origin->folder;
        setup.file = folder;
        setup.name = around_.name + "." + setup.name;
        setup.resources = origin->version == 1   ? uri_of(folder)
                          : origin->version == 2 ? uri_of(folder + "/resources")
                                                 : folder + "/resources/";
        auto library = Library::load(folder + "/" + origin->library, origin->prefix);
        std::shared_ptr<Fmu> made = origin->version == 1   ? make_fmu1(std::move(library), std::move(setup))
                                    : origin->version == 2 ? make_fmu2(std::move(library), std::move(setup))
                                                           : make_fmu3(std::move(library), std::move(setup));
        made->origin = std::move(origin);
        return made;
    }
    void get(LevelPart& it) {
        (*this)(it.rows, it.inputs, it.outputs);
        get(it.builder);
    }
    void get(SampledPart&) { refuse(); }
    void get(ProjectedPart&) { refuse(); }

  public:
    void get(std::shared_ptr<LevelBuilder>& it) {
        LevelHead head;
        get(head);
        if (++deep_ > deepest) refuse();
        it = std::make_shared<LevelBuilder>(head, false);
        const std::size_t count = from_.get_size(1);
        check();
        for (std::size_t k = 0; k < count; ++k) {
            LevelPartKind part;
            get(part);
            std::visit([&](auto& each) { it->add(std::move(each)); }, part);
        }
        --deep_;
    }

  private:
    ByteReader from_;
    const Surroundings& around_;
    std::vector<std::shared_ptr<Linear>> known_;
    int deep_ = 0;
};

}  // namespace

std::string write_plan(const CoupledPlan& plan) {
    std::string body;
    PlanWriter line(body);
    // what is listed is not changed by writing
    line(const_cast<PlanFace&>(plan.face), const_cast<StartProgram&>(plan.program));
    std::shared_ptr<LevelBuilder> root = plan.root;
    line.put(root);
    std::string bytes(magic, sizeof magic - 1);
    ByteWriter head(bytes);
    head.put(plan_version);
    head.put(checksum(body.data(), body.size()));
    bytes += body;
    return bytes;
}

CoupledPlan read_plan(const std::string& bytes, const Surroundings& around) {
    constexpr std::size_t start = sizeof magic - 1, head = start + sizeof plan_version + 8;
    if (bytes.size() < head || bytes.compare(0, start, magic) != 0)
        throw std::invalid_argument("it is not a plan of hocket");
    const std::string words = bytes.substr(start, head - start), body = bytes.substr(head);
    ByteReader from(words);
    std::uint32_t version = 0;
    std::uint64_t sum = 0;
    from.get(version);
    from.get(sum);
    if (version != plan_version)
        throw std::invalid_argument("it is of version " + std::to_string(version) + ", this library reads " +
                                    std::to_string(plan_version));
    if (sum != checksum(body.data(), body.size())) throw std::invalid_argument("it is damaged");
    PlanReader line(body, around);
    CoupledPlan plan;
    line(plan.face, plan.program);
    line.get(plan.root);
    if (!line.finished()) throw std::invalid_argument("it is damaged");
    return plan;
}

}  // namespace hocket
