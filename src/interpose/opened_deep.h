// Objects opened with RTLD_DEEPBIND, which are bound to the MPI library past the preloaded
// wrappers.
#pragma once

namespace weft::interpose {

// This thread is about to open an object in this mode of dlopen().
void note_opening(int mode);

// Binds objects opened so as they would be without that flag, for wrapped calls and for those of
// the dynamic linker that Weft shows. It runs at the next call of the dynamic linker, since
// dlopen() itself must return to its caller, which it recognises by the address.
void bind_what_was_opened();

}  // namespace weft::interpose
