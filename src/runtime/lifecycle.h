// Lifecycle: begins and ends everything that Weft keeps between MPI_Init and MPI_Finalize.
#pragma once

#include <mpi.h>

#include <string>

#include "base/config.h"
#include "runtime/job/runtime.h"

namespace weft {

class Lifecycle final : public Runtime {
 public:
  // Makes Weft's runtime, right after the MPI library's own initialisation; collective over all
  // ranks. asked_level: the thread level that the application requested. thread_level: the level
  // that the library provides. level_kept: the rule of engine auto has kept the application's
  // level.
  static void begin(const Config& config, int asked_level, int thread_level, bool level_kept);
  // Returns whether Weft has threads that must not call the library once its MPI_Finalize has
  // begun.
  static bool loses_threads_in_finalize();
  // Ends threads that must not call the library once its MPI_Finalize has begun; the application's
  // callbacks in it may still use all of MPI. Is called right before.
  static void finalize_begins();
  // Ends Weft's runtime inside the MPI library's finalisation, while the library still works;
  // collective over all ranks.
  static void end();
  // Ends Weft's runtime without MPI calls, if the library has finalised before end() was called.
  static void end_without_library();

  void keep_library_going() override;
  void agent_has_ended() override;

 private:
  using Runtime::Runtime;
  // Returns the active object; nullptr if there is none.
  static Lifecycle* current() { return static_cast<Lifecycle*>(active()); }

  bool drives_transfers() const { return threads_allowed() && config.engine != Engine::function; }
  void agree_on_all(int rank, int asked_level);
  // Chooses the cores of all ranks' progress threads.
  void place_threads();
  void agree_on_threads(int rank, int asked_level);
  void share_cores();
  void agree_on_variants();
  void prepare_initialisations(int rank);
  void take_calls(int rank);
  void follow_windows(int rank);
  // Returns a reason and what to do; "" if windows can be looked after.
  std::string why_no_windows() const;
  static void nothing_passes_through();
  static void stand_aside();
  void report(int rank, int ranks, bool is_kept);
  bool keep_plans_of_all(int rank);
  // Returns a sentence about the whole run for the summary; "" if there is none.
  std::string remark() const;

  MPI_Comm reports_{};  // communicator of all ranks for the summary and the trace at the end; made
                        // only if one of them is wanted
};

}  // namespace weft
