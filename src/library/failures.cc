// Finds out whether a job continues after a rank has failed. Open MPI reports this by an attribute
// of MPI_COMM_WORLD, which is right whether the setting came from the launcher, the environment or
// a file.
#include "library/failures.h"

#include <cstdlib>
#include <string_view>

#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "library/search.h"

namespace weft {

#ifdef WEFT_FAMILY_OPENMPI

bool is_to_continue_after_failures() {
  // These are the first letters of the values that disable fault tolerance: 0, false, no, disabled.
  constexpr std::string_view kNo = "0fFnNdD";
  const char* const asked = std::getenv("OMPI_MCA_mpi_ft_enable");
  return asked && *asked && kNo.find(*asked) == std::string_view::npos;
}

bool continues_after_failures() {
  constexpr int kFaultTolerance = 12;  // the value of MPI_FT, which mpi.h of Open MPI 4 lacks
  // A library without MPIX_Comm_revoke cannot continue after failures. It would reject the
  // attribute's key as invalid, so this function must not ask for the attribute there.
  if (!find_behind_weft("MPIX_Comm_revoke")) return false;
  int* enabled = nullptr;
  int found = 0;
  library_calls.Comm_get_attr(handles.comm_world, kFaultTolerance, &enabled, &found);
  return found && *enabled != 0;
}

#else

bool is_to_continue_after_failures() {
  return false;
}

bool continues_after_failures() {
  return false;
}

#endif

bool all_are_left(MPI_Comm comm) {
  using Agree = int(MPI_Comm, int*);
  auto* const agree = reinterpret_cast<Agree*>(find_behind_weft("PMPIX_Comm_agree"));
  int everybody = 1;
  return agree && agree(comm, &everybody) == MPI_SUCCESS;
}

}  // namespace weft
