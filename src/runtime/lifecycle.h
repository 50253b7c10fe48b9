// Lifecycle starts Weft in MPI_Init and ends it in MPI_Finalize.
#pragma once

#include <mpi.h>

#include <string>

#include "base/config.h"
#include "runtime/job/runtime.h"

namespace weft {

class Lifecycle final : public Runtime {
 public:
  // Starts Weft. It must be called right after the MPI library's own initialisation; collective
  // over all ranks. asked_level: the thread level that the application requested. thread_level: the
  // level that the MPI library provides. level_kept: whether the rule of engine auto has left the
  // application's level unchanged.
  static void begin(const Config& config, int asked_level, int thread_level, bool level_kept);
  // Returns whether Weft has threads that call the MPI library, but must stop doing so before its
  // MPI_Finalize is called.
  static bool loses_threads_in_finalize();
  // Stops the threads that must not call the MPI library during MPI_Finalize. It must be called
  // directly before the MPI library's MPI_Finalize. Application threads then advance all
  // collectives.
  static void finalize_begins();
  // Ends Weft inside the MPI library's MPI_Finalize, while MPI calls still work; collective over
  // all ranks.
  static void end();
  // Ends Weft without MPI calls. It is needed if the MPI library was finalised without calling
  // end().
  static void end_without_library();

  void keep_library_going() override;
  void agent_has_ended() override;

 private:
  using Runtime::Runtime;
  // Returns the object of this process; nullptr before begin() and after the end.
  static Lifecycle* current() { return static_cast<Lifecycle*>(active()); }

  bool drives_transfers() const { return threads_allowed() && config.engine != Engine::function; }
  void agree_on_all(int rank, int asked_level);
  // Chooses the core of this rank's progress thread, by the placement that the user requested.
  void place_threads();
  void agree_on_threads(int rank, int asked_level);
  void share_cores();
  void agree_on_variants();
  void prepare_initialisations(int rank);
  void take_calls(int rank);
  void follow_windows(int rank);
  // Returns why passive-target accesses to windows cannot be progressed, and what the user can do
  // about that; "" if they can.
  std::string why_no_windows() const;
  static void nothing_passes_through();
  static void stand_aside();
  void report(int rank, int ranks, bool is_kept);
  bool keep_plans_of_all(int rank);
  // Returns a sentence about the whole run for the summary; "" if there is nothing to say.
  std::string remark() const;

  // A communicator of all ranks, for the summary and the trace at the end. It is made only if one
  // of these is requested.
  MPI_Comm reports_{};
};

}  // namespace weft
