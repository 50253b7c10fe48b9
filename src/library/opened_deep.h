// Handles objects opened with RTLD_DEEPBIND. The dynamic linker binds their MPI calls to the MPI
// library instead of Weft's preloaded wrappers.
#pragma once

namespace weft {

// Notes that this thread is about to call dlopen(). mode: the flags of that call.
void note_opening(int mode);

// Rebinds objects that were opened with RTLD_DEEPBIND, so that their calls of MPI, dlsym() and
// dlopen() reach Weft. It runs at the next dlopen() or dlsym() after the one that opened the
// object. It cannot run at the end of that dlopen(): the C library's dlopen() recognises the
// calling object by its return address, and therefore returns directly to the program.
void bind_what_was_opened();

}  // namespace weft
