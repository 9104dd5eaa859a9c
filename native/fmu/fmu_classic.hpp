// What FMI 1 and FMI 2 have in common: values by type, derivatives, texts. Their names and booleans differ.
// In:  functions, found by the version
// Out: values set and got
#pragma once

#include "fmu/fmu_log.hpp"
#include "fmu/fmu_values.hpp"

namespace hocket {

template <class Boolean> class Classic : public Fmu {
  protected:
    using Fmu::Fmu;

    // A step that did not reach its end.
    Reach judge_end(fmi::Status status, const char* function, double* reached) {
        if (status == fmi::pending) {
            phase_ = Phase::lost;  // it still computes: it can neither be called nor freed
            wrong(std::string(function) + " works in the background (Pending), which hocket does not use");
            return Reach::failed;
        }
        if (status != fmi::discard) return good(status, function), Reach::failed;
        if (real_status_) real_status_(instance_, fmi::last_successful_time, reached);
        return Reach::early;
    }

    double last_time() final {
        double reached = Fmu::last_time();
        if (!real_status_ || real_status_(instance_, fmi::last_successful_time, &reached) > fmi::warning)
            return Fmu::last_time();
        return reached;
    }
    bool set_derivatives(const double* u) {
        if (rows_ == 1 || !setup.interpolates || !set_derivatives_) return true;
        references_.clear();
        orders_.clear();
        room_.clear();
        for (const Group& group : setup.set) {
            if (group.type != Type::real) continue;
            double factorial = 1.0;
            for (int power = 1; power < rows_; ++power) {
                factorial *= power;
                for (std::size_t k = 0; k < group.references.size(); ++k) {
                    references_.push_back(group.references[k]);
                    orders_.push_back(power);
                    room_.push_back(factorial * group.turn(u[power * setup.inputs + group.places[k]]));
                }
            }
        }
        if (references_.empty()) return true;
        const fmi::Status status =
            set_derivatives_(instance_, references_.data(), references_.size(), orders_.data(), room_.data());
        if (status != fmi::discard && status != fmi::error) return good(status, set_derivatives_.name);
        setup.interpolates = false;
        notes_.push_back(std::string("it declares that it takes input derivatives, and ") +
                         set_derivatives_.name + " refuses them: its inputs are held during each step");
        return true;
    }
    bool get_slopes(const Group& group, double* values) final {
        orders_.assign(group.references.size(), 1);
        return call(get_derivatives_, group.references.data(), group.references.size(), orders_.data(),
                    values);
    }

    bool set_group(const Group& group, const double* values) final {
        if (straight_in_ && &group == setup.set.data())
            return call(set_real_, group.references.data(), group.references.size(), values);
        if (group.type == Type::real) return set_as(set_real_, group, values, reals_);
        if (group.type == Type::boolean) return set_as(set_boolean_, group, values, truths_);
        return set_as(set_integer_, group, values, whole_);
    }
    bool get_group(const Group& group, double* values) final {
        if (straight_out_ && &group == setup.get.data())
            return call(get_real_, group.references.data(), group.references.size(), values);
        if (group.type == Type::real) return get_as(get_real_, group, values, reals_);
        if (group.type == Type::boolean) return get_as(get_boolean_, group, values, truths_);
        return get_as(get_integer_, group, values, whole_);
    }
    bool set_whole(Type type, const std::vector<fmi::Reference>& references,
                   const std::vector<std::int64_t>& values) final {
        return put(type, references, {values.begin(), values.end()});
    }
    bool write_texts(const fmi::Reference* references, std::size_t count, const std::string* values,
                     bool) final {
        std::vector<fmi::Text> texts;
        for (std::size_t k = 0; k < count; ++k) texts.push_back(values[k].c_str());
        return call(set_string_, references, count, texts.data());
    }
    bool read_text(fmi::Reference reference, bool, std::string& value) final {
        fmi::Text text = nullptr;
        if (!call(get_string_, &reference, std::size_t{1}, &text)) return false;
        value = text ? text : "";
        return true;
    }

    Function<fmi::Set<double>> set_real_;
    Function<fmi::Get<double>> get_real_;
    Function<fmi::Set<int>> set_integer_;
    Function<fmi::Get<int>> get_integer_;
    Function<fmi::Set<Boolean>> set_boolean_;
    Function<fmi::Get<Boolean>> get_boolean_;
    Function<fmi::Set<fmi::Text>> set_string_;
    Function<fmi::Get<fmi::Text>> get_string_;
    Function<fmi::SetDerivatives> set_derivatives_;
    Function<fmi::GetDerivatives> get_derivatives_;
    Function<fmi::GetRealStatus> real_status_;

  private:
    template <class T>
    bool set_as(const Function<fmi::Set<T>>& set, const Group& group, const double* values,
                std::vector<T>& room) {
        return pack(group, values, room) &&
               call(set, group.references.data(), group.references.size(), room.data());
    }
    template <class T>
    bool get_as(const Function<fmi::Get<T>>& get, const Group& group, double* values, std::vector<T>& room) {
        room.resize(group.references.size());
        return call(get, group.references.data(), group.references.size(), room.data()) &&
               unpack(group, room, values);
    }

    std::vector<fmi::Reference> references_;
    std::vector<double> reals_;
    std::vector<int> whole_, orders_;
    std::vector<Boolean> truths_;
};

}  // namespace hocket
