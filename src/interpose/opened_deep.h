// Objects opened with RTLD_DEEPBIND, which are bound to the MPI library past the preloaded
// wrappers.
#pragma once

namespace weft::interpose {

// This thread is about to open an object in this mode of dlopen().
void note_opening(int mode);

// Binds what has been opened so since to what it would be bound to without that flag: of wrapped
// calls, and of the dynamic linker's that Weft shows. At the next call of the dynamic linker's,
// since dlopen() itself has to return to its caller, by whom it goes.
void bind_what_was_opened();

}  // namespace weft::interpose
