#include <nanobind/nanobind.h>

NB_MODULE(_native, m) { m.doc() = "The native core of abers."; }
