#include "engine/row_buffer.hpp"

#include <cmath>

#include "engine/energy_ledger.hpp"
#include "engine/level_state.hpp"
#include "engine/polynomial.hpp"

namespace hocket {

void RowRecorder::record(std::shared_ptr<RowBuffer> buffer, std::vector<Column> columns) {
    buffer_ = std::move(buffer);
    columns_ = std::move(columns);
}

void RowRecorder::add(std::int64_t tick, std::int64_t n) {
    buffer_->begin(tick, state_.clock.time(tick), n);
    for (const Column& column : columns_) {
        double value = 0.0;
        if (column.event != -1 && (column.event < 0 || !shown || !(*shown)[column.event])) {
            buffer_->data.push_back(std::nan(""));
            continue;
        }
        switch (column.kind) {
            case Column::Kind::ledger: value = ledger_.column(column.port); break;
            case Column::Kind::output:
                value = state_.memory.y[state_.slots[column.child].y + column.port];
                break;
            case Column::Kind::input: {
                const Child& child = state_.children[column.child];
                const double* c = state_.memory.u.data() + state_.slots[column.child].u + column.port;
                value = value_at(c, child.rows, child.inputs, state_.clock.span(tick - child.base));
                break;
            }
        }
        buffer_->data.push_back(value);
    }
}

}  // namespace hocket
