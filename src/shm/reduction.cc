// Chooses among the reduction kernels, the loops in shm/kernels that are compiled once per
// instruction set.
#include "shm/reduction.h"

#include <array>
#include <unordered_map>

#include "shm/kernels/kernels.h"

namespace weft {

// Returns the kernel for this instruction set; nullptr if the processor lacks it (reduction.h).
// __builtin_cpu_supports checks the processor, and whether the system saves the processor's
// registers.
Kernel find_kernel(Element element, Operator op, InstructionSet set) {
#ifdef __x86_64__
  if (set == InstructionSet::avx2 && __builtin_cpu_supports("avx2"))
    return avx2::find_kernel(element, op);
#endif
  return set == InstructionSet::baseline ? baseline::find_kernel(element, op) : nullptr;
}

Kernel find_kernel(Element element, Operator op) {
  const Kernel kernel = find_kernel(element, op, InstructionSet::avx2);
  return kernel ? kernel : find_kernel(element, op, InstructionSet::baseline);
}

// Returns the element type and the operator of a kernel. If several pairs share one kernel, it
// returns any of them.
std::optional<KernelName> name_of(Kernel kernel) {
  static const auto* names = [] {
    auto* made = new std::unordered_map<Kernel, KernelName>;
    for (int element = 0; element < kElements; ++element)
      for (int op = 0; op < kOperators; ++op) {
        const KernelName name{static_cast<Element>(element), static_cast<Operator>(op)};
        if (const Kernel found = find_kernel(name.element, name.op)) made->emplace(found, name);
      }
    return made;
  }();
  const auto found = names->find(kernel);
  return found == names->end() ? std::nullopt : std::optional(found->second);
}

const char* element_name(Element element) {
  static constexpr std::array<const char*, kElements> kNames = {
      "int8",          "int16",          "int32",
      "int64",         "uint8",          "uint16",
      "uint32",        "uint64",         "byte",
      "boolean",       "float16",        "bfloat16",
      "float32",       "float64",        "long double",
      "float complex", "double complex", "long double complex",
      "float int",     "double int",     "long int",
      "two int",       "short int",      "long double int"};
  return kNames[static_cast<std::size_t>(element)];
}

const char* operator_name(Operator op) {
  static constexpr std::array<const char*, kOperators> kNames = {
      "sum",  "prod", "max", "min",  "land",   "lor",
      "lxor", "band", "bor", "bxor", "maxloc", "minloc"};
  return kNames[static_cast<std::size_t>(op)];
}

std::int64_t bytes_of(Element element) {
  switch (element) {
    case Element::int8:
    case Element::uint8:
    case Element::byte:
    case Element::boolean:
      return 1;
    case Element::int16:
    case Element::uint16:
    case Element::float16:
    case Element::bfloat16:
      return 2;
    case Element::int32:
    case Element::uint32:
    case Element::float32:
      return 4;
    case Element::int64:
    case Element::uint64:
    case Element::float64:
    case Element::float_complex:
    case Element::float_int:
    case Element::two_int:
    case Element::short_int:
      return 8;
    case Element::double_complex:
    case Element::double_int:
    case Element::long_int:
      return 16;
    case Element::long_double:
      return sizeof(long double);
    case Element::long_double_complex:
    case Element::long_double_int:
      return 2 * sizeof(long double);
  }
  return 0;
}

}  // namespace weft
