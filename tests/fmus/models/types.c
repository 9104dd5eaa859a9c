/*
description = "One input, output and parameter of each type; a step computes each output y from its u and p"
types.Level = ["off", "low", "high"]

[variables]
u_real = { input = 0.0 }
y_real = { output = 0.0, initial = "exact", from = [] }
p_real = { parameter = 2.0 }
u_int = { input = 0 }
y_int = { output = 0, initial = "exact", from = [] }
p_int = { parameter = 1 }
u_bool = { input = false }
y_bool = { output = false, initial = "exact", from = [] }
p_bool = { parameter = true }
u_enum = { input = 1, type = "Level" }
y_enum = { output = 1, type = "Level", initial = "exact", from = [] }
p_enum = { parameter = 2, type = "Level" }
u_string = { input = "" }
y_string = { output = "", initial = "exact", from = [] }
p_string = { parameter = "hello " }

[variables.3]
u_float32 = { input = 0.0, type = "Float32" }
y_float32 = { output = 0.0, type = "Float32", initial = "exact", from = [] }
u_int8 = { input = 0, type = "Int8" }
y_int8 = { output = 0, type = "Int8", initial = "exact", from = [] }
u_uint8 = { input = 0, type = "UInt8" }
y_uint8 = { output = 0, type = "UInt8", initial = "exact", from = [] }
u_int16 = { input = 0, type = "Int16" }
y_int16 = { output = 0, type = "Int16", initial = "exact", from = [] }
u_uint16 = { input = 0, type = "UInt16" }
y_uint16 = { output = 0, type = "UInt16", initial = "exact", from = [] }
u_uint32 = { input = 0, type = "UInt32" }
y_uint32 = { output = 0, type = "UInt32", initial = "exact", from = [] }
u_int64 = { input = 0, type = "Int64" }
y_int64 = { output = 0, type = "Int64", initial = "exact", from = [] }
u_uint64 = { input = 0, type = "UInt64" }
y_uint64 = { output = 0, type = "UInt64", initial = "exact", from = [] }
u_binary = { input = "", type = "Binary" }
y_binary = { output = "", type = "Binary", initial = "exact", from = [] }
p_float32 = { parameter = 0.5, type = "Float32" }
p_int8 = { parameter = 1, type = "Int8" }
p_uint8 = { parameter = 1, type = "UInt8" }
p_int16 = { parameter = 1, type = "Int16" }
p_uint16 = { parameter = 1, type = "UInt16" }
p_uint32 = { parameter = 1, type = "UInt32" }
p_int64 = { parameter = 1, type = "Int64" }
p_uint64 = { parameter = 1, type = "UInt64" }
p_binary = { parameter = "\u00CA\u00FE", type = "Binary" }
*/
#include <string.h>

#include "table.h"

int step(Model *m, double) {
    m->y_real = m->u_real * m->p_real;
    m->y_int = m->u_int + m->p_int;
    m->y_bool = m->u_bool != m->p_bool;
    m->y_enum = m->u_enum > m->p_enum ? m->u_enum : m->p_enum;
    snprintf(m->y_string, LENGTH, "%.100s%.100s", m->p_string, m->u_string);
#if FMI == 3
    m->y_float32 = m->u_float32 * m->p_float32;
    m->y_int8 = m->u_int8 + m->p_int8;
    m->y_uint8 = m->u_uint8 + m->p_uint8;
    m->y_int16 = m->u_int16 + m->p_int16;
    m->y_uint16 = m->u_uint16 + m->p_uint16;
    m->y_uint32 = m->u_uint32 + m->p_uint32;
    m->y_int64 = m->u_int64 + m->p_int64;
    m->y_uint64 = m->u_uint64 + m->p_uint64;
    size_t head = m->p_binary.size, tail = m->u_binary.size;
    if (head + tail > LENGTH)
        return ERROR;
    m->y_binary.size = head + tail;
    memcpy(m->y_binary.bytes, m->p_binary.bytes, head);
    memcpy(m->y_binary.bytes + head, m->u_binary.bytes, tail);
#endif
    return OK;
}
