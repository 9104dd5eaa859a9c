// Drives one FMU through hocket's classes without Python, so that sanitizers see all of it.
// In:  a job, a text file: a word per line with its values; see `read_job`
// Out: a line for each thing done, then `done` or `failed: ...`
#include <dlfcn.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "fmu/fmu.hpp"

using namespace hocket;

namespace {

const std::map<std::string, Type> types{
    {"real", Type::real},   {"float32", Type::float32}, {"int8", Type::int8},      {"uint8", Type::uint8},
    {"int16", Type::int16}, {"uint16", Type::uint16},   {"int32", Type::int32},    {"uint32", Type::uint32},
    {"int64", Type::int64}, {"uint64", Type::uint64},   {"boolean", Type::boolean}};

// A start value: of numbers, of whole numbers, or of a text.
struct Put {
    std::string kind;
    Type type = Type::real;
    std::vector<fmi::Reference> references;
    std::vector<double> numbers;
    std::vector<std::int64_t> whole;
    std::string text;
};

struct Job {
    int version = 2;
    std::string library, prefix;
    Setup setup;
    std::vector<Put> structural, puts;
    std::vector<std::vector<double>> u;  // a row per power of time
    double h = 0.1;
    std::vector<std::vector<std::string>> actions;
};

std::vector<std::string> words(std::istream& line) {
    std::vector<std::string> found;
    for (std::string word; line >> word;) found.push_back(word);
    return found;
}

// TYPE REFERENCE[:PLACE,PLACE...]...
Group group(std::istream& line) {
    std::string type;
    line >> type;
    Group result{types.at(type), {}, {}};
    for (const std::string& word : words(line)) {
        const auto colon = word.find(':');
        result.references.push_back(std::stoul(word.substr(0, colon)));
        std::stringstream places(word.substr(colon + 1));
        for (std::string place; std::getline(places, place, ',');) result.places.push_back(std::stoi(place));
    }
    return result;
}

// numbers|whole TYPE REFERENCE VALUE...; text|binary REFERENCE CHARACTERS
Put put(std::istream& line) {
    Put result;
    std::string type;
    fmi::Reference reference = 0;
    line >> result.kind;
    if (result.kind == "numbers" || result.kind == "whole") {
        line >> type;
        result.type = types.at(type);
    }
    line >> reference;
    result.references = {reference};
    if (result.kind == "numbers")
        for (const std::string& word : words(line)) result.numbers.push_back(std::stod(word));
    else if (result.kind == "whole")
        for (const std::string& word : words(line)) result.whole.push_back(std::stoll(word));
    else {
        line.get();
        std::getline(line, result.text);
    }
    return result;
}

Job read_job(const char* path) {
    Job job;
    Setup& setup = job.setup;
    std::ifstream file(path);
    if (!file) throw std::runtime_error(std::string("there is no file ") + path);
    const auto rest = [](std::istream& line, std::string& into) { std::getline(line >> std::ws, into); };
    for (std::string text; std::getline(file, text);) {
        std::istringstream line(text);
        std::string word;
        line >> word;
        if (word == "version")
            line >> job.version;
        else if (word == "library")
            rest(line, job.library);
        else if (word == "prefix")
            line >> job.prefix;
        else if (word == "name")
            line >> setup.name;
        else if (word == "token")
            line >> setup.token;
        else if (word == "resources")
            rest(line, setup.resources);
        else if (word == "logging")
            line >> setup.logging;
        else if (word == "events")
            line >> setup.events;
        else if (word == "early")
            line >> setup.early;
        else if (word == "feeds_through")
            line >> setup.feeds_through;
        else if (word == "variable")
            line >> setup.variable;
        else if (word == "interpolates")
            line >> setup.interpolates;
        else if (word == "inputs")
            line >> setup.inputs;
        else if (word == "outputs")
            line >> setup.outputs;
        else if (word == "set")
            setup.set.push_back(group(line));
        else if (word == "get")
            setup.sloped.push_back(setup.get.emplace_back(group(line)));
        else if (word == "continuous")
            for (const auto& n : words(line)) setup.continuous.push_back(std::stoi(n));
        else if (word == "discrete")
            for (const auto& n : words(line)) setup.discrete.push_back(std::stoi(n));
        else if (word == "text_in" || word == "text_out") {
            fmi::Reference reference = 0;
            bool binary = false;
            line >> reference >> binary;
            (word == "text_in" ? setup.texts_in : setup.texts_out).push_back(reference);
            (word == "text_in" ? setup.binary_in : setup.binary_out).push_back(binary);
        } else if (word == "structural")
            job.structural.push_back(put(line));
        else if (word == "put")
            job.puts.push_back(put(line));
        else if (word == "u") {
            job.u.emplace_back();
            for (const auto& n : words(line)) job.u.back().push_back(std::stod(n));
        } else if (word == "h")
            line >> job.h;
        else if (word == "do")
            job.actions.push_back(words(line));
        else if (!word.empty())
            throw std::runtime_error("what is `" + text + "`?");
    }
    return job;
}

std::string shown(const std::vector<double>& values) {
    std::string text;
    char number[32];
    for (double value : values) {
        std::snprintf(number, sizeof number, " %.17g", value);
        text += number;
    }
    return text;
}

long resident() {  // kB
    std::ifstream file("/proc/self/statm");
    long size = 0, pages = 0;
    file >> size >> pages;
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

struct Stop {};

class Driver {
  public:
    explicit Driver(const Job& job) : job_(job), y_(job.setup.outputs) {
        // the names of its functions must outlive it, for those who read reports of leaks
        if (!dlopen(job.library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))
            throw std::runtime_error(dlerror());
        for (const auto& row : job.u) u_.insert(u_.end(), row.begin(), row.end());
        rows_ = static_cast<int>(job.u.size());
        make();
    }

    // FMI does not count beyond the number of steps: ticks are steps here.
    void run(const std::vector<std::string>& action) {
        doing_ = action.at(0);
        const int n = action.size() > 1 ? std::stoi(action[1]) : 1;
        const std::map<std::string, std::function<void()>> known{
            {"start", [&] { start(); }},
            {"output", [&] { output(), tell("y", shown(y_)); }},
            {"ready", [&] { need(fmu_->ready()); }},
            {"steps", [&] { steps(n, false), tell("y", shown(y_)); }},
            {"fast", [&] { steps(n, true), tell("y", shown(y_)); }},
            {"slope", [&] { slope(); }},
            {"texts", [&] { texts(); }},
            {"rewind", [&] { rewind(n); }},
            {"many", [&] { many(n); }},
            {"stale", [&] { stale(); }},
            {"foreign", [&] { foreign(); }},
            {"rows", [&] { rows(); }},
            {"save", [&] { kept_ = std::make_unique<Saved>(fmu_), need(fmu_->save(*kept_)); }},
            {"restore", [&] { need(fmu_->restore(*kept_)), tick_ = 0; }},
            {"close", [&] { fmu_->close(); }},
            {"make", [&] { make(); }},
        };
        known.at(doing_)();
    }

    void fail() {
        const Failure failure = fmu_->failure();
        std::string line = "failed: " + doing_ + " at step " + std::to_string(tick_);
        if (failure.kind == Failure::Kind::none) line += ", outputs" + shown(y_);
        if (failure.kind == Failure::Kind::stopped_early) line += ", reached" + shown({fmu_->reached_time()});
        if (!fmu_->problem().empty()) line += ", " + fmu_->problem();
        const std::string said = fmu_->complaint();
        tell(line, said.empty() ? "" : " (" + said + ")");
    }

    // Everything is used once more after a failure: it must refuse, not crash.
    void insist() {
        std::vector<double> y(y_.size());
        if (fmu_->step(span(), u_.data())) tell("after all", "stepped");
        fmu_->output(tick_, u_.data(), y.data());
    }

    void finish() {
        for (const Message& m : take_log())
            tell("log", " " + std::to_string(m.status) + " " + m.category + " " + m.text);
        kept_.reset();
        fmu_.reset();
    }

  private:
    void make() {
        auto library = Library::load(job_.library, job_.prefix);
        const auto factory = job_.version == 1 ? make_fmu1 : job_.version == 2 ? make_fmu2 : make_fmu3;
        fmu_ = factory(std::move(library), job_.setup);
        fmu_->set_rows(rows_);
        tick_ = 0;
    }

    void need(bool good) {
        if (!good) throw Stop{};
    }
    static void tell(const std::string& what, const std::string& more = "") {
        std::cout << what << more << "\n";
    }
    Span span() const { return {tick_, 1, static_cast<double>(tick_) * job_.h, job_.h}; }

    void start() {
        tick_ = 0;
        need(fmu_->instantiate());
        if (!job_.structural.empty()) {
            need(fmu_->configure(true));
            for (const Put& put : job_.structural) need(set(put));
            need(fmu_->configure(false));
        }
        need(fmu_->prepare({0.0, true, 100.0, true, 1e-4}));
        for (const Put& put : job_.puts) need(set(put));
        need(fmu_->begin());
    }
    bool set(const Put& put) {
        if (put.kind == "numbers") return fmu_->put(put.type, put.references, put.numbers);
        if (put.kind == "whole") return fmu_->put_whole(put.type, put.references, put.whole);
        return fmu_->put_texts(put.references, {put.text}, put.kind == "binary");
    }
    void output() { need(fmu_->output(tick_, u_.data(), y_.data())); }
    void step() {
        need(fmu_->step(span(), u_.data()));
        ++tick_;
    }
    void steps(int n, bool fast) {
        const auto both = fmu_->step_output();
        for (int k = 0; k < n; ++k) {
            if (fast) {
                need(both(*fmu_, span(), u_.data(), y_.data()));
                ++tick_;
            } else {
                step();
                output();
            }
        }
    }
    void slope() {
        std::vector<double> dy(y_.size());
        need(fmu_->slope(tick_, u_.data(), dy.data()));
        tell("dy", shown(dy));
    }
    void texts() {
        std::string value;
        for (std::size_t k = 0; k < job_.setup.texts_in.size(); ++k)
            need(fmu_->set_text(static_cast<int>(k), "there"));
        step();
        for (std::size_t k = 0; k < job_.setup.texts_out.size(); ++k) {
            need(fmu_->get_text(static_cast<int>(k), value));
            tell("text ", value);
        }
    }

    // Save, step, restore, n times over: the same step must end alike, and nothing may grow.
    void rewind(int n) {
        std::set<fmi::State> states;
        std::vector<double> first(y_.size());
        long before = 0;
        for (int k = 0; k < n; ++k) {
            if (k == n / 10) before = resident();
            Saved saved(fmu_);
            need(fmu_->save(saved));
            states.insert(saved.state);
            step();
            output();
            if (k == 0) first = y_;
            if (y_ != first) tell("it goes on differently:", shown(first) + " and" + shown(y_));
            need(fmu_->restore(saved));
            --tick_;
        }
        tell("resident ", std::to_string(before) + " " + std::to_string(resident()));
        tell("states ", std::to_string(states.size()));
    }

    // Many states at once, then back to each, the newest first.
    void many(int n) {
        std::vector<std::unique_ptr<Saved>> saved;
        std::vector<std::vector<double>> outputs;
        std::set<fmi::State> states;
        for (int k = 0; k < n; ++k) {
            saved.push_back(std::make_unique<Saved>(fmu_));
            need(fmu_->save(*saved.back()));
            states.insert(saved.back()->state);
            step();
            output();
            outputs.push_back(y_);
        }
        for (int k = n - 1; k >= 0; --k) {
            need(fmu_->restore(*saved[k]));
            tick_ = k;
            step();
            output();
            if (y_ != outputs[k]) tell("it goes on differently:", shown(outputs[k]) + " and" + shown(y_));
        }
        need(fmu_->restore(*saved[0]));
        tick_ = 0;
        tell("states ", std::to_string(states.size()));
    }

    // A state outlives the instance it was saved from.
    void stale() {
        auto old = std::make_unique<Saved>(fmu_);
        need(fmu_->save(*old));
        start();
        output();
        Saved fresh(fmu_);
        need(fmu_->save(fresh));
        if (fmu_->restore(*old)) tell("an old state was restored");
        old.reset();  // it must not take the new one with it
        step();
        output();
        const std::vector<double> first = y_;
        Saved other(fmu_);
        need(fmu_->save(other));
        if (other.state == fresh.state) tell("two states are one");
        need(fmu_->restore(fresh));
        tick_ = 0;
        step();
        output();
        if (y_ != first) tell("it goes on differently:", shown(first) + " and" + shown(y_));
    }

    // A state of another instance.
    void foreign() {
        const std::shared_ptr<Fmu> mine = fmu_;
        Saved saved(mine);
        need(mine->save(saved));
        make();
        start();
        output();
        need(fmu_->ready());
        if (fmu_->restore(saved)) tell("a state of another instance was restored");
    }

    // The powers of time that inputs come with change between save and restore.
    void rows() {
        std::vector<double> flat(u_.begin(), u_.begin() + job_.setup.inputs);
        Saved saved(fmu_);
        need(fmu_->save(saved));
        fmu_->set_rows(1);
        need(fmu_->step(span(), flat.data()));
        fmu_->set_rows(rows_);
        ++tick_;
        step();
        need(fmu_->restore(saved));
        tick_ -= 2;
        step();
        output();
    }

    const Job& job_;
    std::shared_ptr<Fmu> fmu_;
    std::unique_ptr<Saved> kept_;
    std::vector<double> u_, y_;
    int rows_ = 1;
    std::int64_t tick_ = 0;
    std::string doing_;
};

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) {
        std::cerr << "usage: fmu_driver JOB\n";
        return 2;
    }
    try {
        const Job job = read_job(arguments[1]);
        Driver driver(job);
        try {
            for (const auto& action : job.actions) driver.run(action);
            std::cout << "done\n";
        } catch (const Stop&) {
            driver.fail();
            driver.insist();
        }
        driver.finish();
    } catch (const std::exception& error) {
        std::cout << "cannot: " << error.what() << "\n";
    }
    return 0;
}
