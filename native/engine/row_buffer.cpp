// The rows a level keeps: the twin of rows.py.
// In:  a level at the end of a step
// Out: time and values, appended; a row of the same time is replaced
#include "engine/level.hpp"

namespace hocket {

void Level::keep_last_row() {
    reached_ = now;
    keep_row(now > 0 && rows_ && rows_->newest != now);
    for (auto& child : children)
        if (auto* level = dynamic_cast<Level*>(child.simulator.get())) level->keep_last_row();
}

void Level::keep_row(bool due) {
    const std::int64_t tick = reached_;
    if (!rows_ || !due) return;
    auto& data = rows_->data;
    if (!data.empty() && rows_->newest == tick) data.resize(data.size() - rows_->width);
    rows_->newest = tick;
    data.push_back(clock.time(tick));
    for (const Column& column : columns_) {
        if (column.child < 0) {
            data.push_back(ledger_column(column.port));
        } else if (column.is_input) {
            const Child& child = children[column.child];
            const double s = clock.span(tick - child.base);
            const double* c = u.data() + slots_[column.child].u + column.port;
            data.push_back(value_at(c, child.rows, child.inputs, s));
        } else {
            data.push_back(y[slots_[column.child].y + column.port]);
        }
    }
}

}  // namespace hocket
