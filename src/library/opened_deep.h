// Handles objects opened with RTLD_DEEPBIND, which the dynamic linker binds to the MPI library
// instead of the preloaded wrappers.
#pragma once

namespace weft {

// Notes that this thread is about to call dlopen() with this mode.
void note_opening(int mode);

// Rebinds objects opened with RTLD_DEEPBIND as if they had been opened without that flag, for
// wrapped MPI calls, dlsym() and dlopen(). It runs at the next dlopen() or dlsym(), because
// dlopen() identifies its caller by the return address, and so must return to it directly.
void bind_what_was_opened();

}  // namespace weft
