// Examines a program file by its ELF program headers and dynamic section. If these name no MPI
// library, the symbols tell whether an MPI library is linked statically.
#include "launch/program.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace weft::launch {
namespace {

// Maps a file into memory, and unmaps it in the destructor. Every access is checked against the
// file's length.
class MappedFile {
 public:
  MappedFile(int fd, std::size_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    void* at = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at != MAP_FAILED) base_ = static_cast<const char*>(at);
  }
  ~MappedFile() {
    if (base_) munmap(const_cast<char*>(base_), bytes_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  template <class T>
  bool read(std::uint64_t offset, T& value) const {
    if (!base_ || offset > bytes_ || bytes_ - offset < sizeof(T)) return false;
    std::memcpy(&value, base_ + offset, sizeof(T));
    return true;
  }
  std::string_view text(std::uint64_t offset) const {
    if (!base_ || offset >= bytes_) return {};
    return {base_ + offset, strnlen(base_ + offset, bytes_ - offset)};
  }

 private:
  const char* base_ = nullptr;
  std::size_t bytes_;
};

#if defined(__aarch64__)
constexpr Elf64_Half kOwnMachine = EM_AARCH64;
#else
constexpr Elf64_Half kOwnMachine = EM_X86_64;
#endif

struct DynamicPart {
  std::string_view interpreter;  // path of the dynamic loader; empty if there is none
  bool soname = false;
  std::vector<std::string_view> needed;
};

bool file_offset(const std::vector<Elf64_Phdr>& headers, std::uint64_t address,
                 std::uint64_t& offset) {
  for (const auto& header : headers) {
    if (header.p_type != PT_LOAD || address < header.p_vaddr) continue;
    if (address - header.p_vaddr >= header.p_filesz) continue;
    offset = address - header.p_vaddr + header.p_offset;
    return true;
  }
  return false;
}

void read_dynamic(const MappedFile& file, const std::vector<Elf64_Phdr>& headers,
                  const Elf64_Phdr& dynamic, DynamicPart& part) {
  std::uint64_t strings = 0;
  std::vector<std::uint64_t> names;
  Elf64_Dyn entry;
  for (std::uint64_t at = 0; at + sizeof entry <= dynamic.p_filesz; at += sizeof entry) {
    if (!file.read(dynamic.p_offset + at, entry) || entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_NEEDED) names.push_back(entry.d_un.d_val);
    if (entry.d_tag == DT_SONAME) part.soname = true;
    if (entry.d_tag == DT_STRTAB) file_offset(headers, entry.d_un.d_ptr, strings);
  }
  for (const auto name : names) part.needed.push_back(file.text(strings + name));
}

DynamicPart read_parts(const MappedFile& file, const Elf64_Ehdr& elf) {
  std::vector<Elf64_Phdr> headers(elf.e_phnum);
  DynamicPart part;
  for (std::size_t i = 0; i < headers.size(); ++i)
    if (!file.read(elf.e_phoff + i * elf.e_phentsize, headers[i])) return part;
  for (const auto& header : headers) {
    if (header.p_type == PT_INTERP) part.interpreter = file.text(header.p_offset);
    if (header.p_type == PT_DYNAMIC) read_dynamic(file, headers, header, part);
  }
  return part;
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// Returns the MPI family to which a library belongs. The names of libmpi.so.12 and of the C++ and
// Fortran libraries of the same family end with the same version number.
Family family_of(std::string_view library) {
  if (library.substr(0, 6) != "libmpi") return Family::unknown;
  if (library.find("_abi.so") != std::string_view::npos) return Family::abi;
  if (ends_with(library, ".so.12")) return Family::mpich;
  if (ends_with(library, ".so.40")) return Family::openmpi;
  return Family::unknown;
}

bool is_symbol_table(const Elf64_Shdr& section) {
  return (section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM) &&
         section.sh_entsize == sizeof(Elf64_Sym);
}

bool defines(const MappedFile& file, const Elf64_Shdr& table, std::uint64_t names,
             std::string_view wanted) {
  Elf64_Sym symbol;
  for (std::uint64_t at = 0; at + sizeof symbol <= table.sh_size; at += sizeof symbol) {
    if (!file.read(table.sh_offset + at, symbol)) return false;
    if (symbol.st_shndx != SHN_UNDEF && file.text(names + symbol.st_name) == wanted) return true;
  }
  return false;
}

// Returns whether an MPI library is linked statically into the program. It looks for a definition
// of PMPI_Init, which PMPI tools leave to the MPI library.
bool holds_an_mpi_library(const MappedFile& file, const Elf64_Ehdr& elf) {
  const auto section = [&](std::uint64_t index, Elf64_Shdr& header) {
    return index < elf.e_shnum && file.read(elf.e_shoff + index * elf.e_shentsize, header);
  };
  Elf64_Shdr table, names;
  for (std::uint64_t i = 0; section(i, table); ++i)
    if (is_symbol_table(table) && section(table.sh_link, names) &&
        defines(file, table, names.sh_offset, "PMPI_Init"))
      return true;
  return false;
}

bool has_capabilities(const std::string& path) {
  return getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

// Returns why Weft cannot be preloaded into the program; "" if it can. File capabilities matter
// only for users other than root.
std::string why_not(const DynamicPart& part, const std::string& path, const struct stat& status) {
  // Statically linked programs have no interpreter. Neither has the dynamic loader itself, but it
  // has a library name (DT_SONAME).
  if (part.interpreter.empty() && !part.soname)
    return "is a static program: Weft cannot be loaded into it; link it dynamically";
  if (part.interpreter.find("/ld-musl") != std::string_view::npos)
    return "is linked to musl, Weft to the GNU C library: Weft cannot be loaded into it; build it "
           "where the C library is GNU's";
  if (status.st_mode & (S_ISUID | S_ISGID))
    return "is a set-user-ID program: the system refuses to load Weft into it; take that away "
           "with: chmod ug-s " +
           path;
  if (getuid() != 0 && has_capabilities(path))
    return "has capabilities of its own: the system refuses to load Weft into it; take them away "
           "with: setcap -r " +
           path;
  return "";
}

Program refused(std::string why_not) {
  return {false, std::move(why_not), Family::unknown, "", ""};
}

Program judge(const MappedFile& file, const Elf64_Ehdr& elf, const std::string& path,
              const struct stat& status) {
  const DynamicPart part = read_parts(file, elf);
  if (auto reason = why_not(part, path, status); !reason.empty()) return refused(reason);
  Program program;
  for (const auto library : part.needed) {
    if (program.sanitizer.empty() && is_sanitizer(library)) program.sanitizer = library;
    const Family family = family_of(library);
    if (family == Family::unknown || program.family != Family::unknown) continue;
    program.family = family;
    program.mpi_library = library;
  }
  if (program.family == Family::unknown && holds_an_mpi_library(file, elf))
    return refused(
        "has its MPI library linked into it: Weft cannot come before that; link it to the shared "
        "library, which 'ldd " +
        path + "' then shows");
  return program;
}

bool is_program(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

}  // namespace

// Returns whether the library is the runtime of a sanitizer of GCC or Clang. The runtime for
// undefined behaviour is not counted, since it replaces no functions and may be loaded in any
// order.
bool is_sanitizer(std::string_view library) {
  library.remove_prefix(library.rfind('/') + 1);
  for (const std::string_view start :
       {"libasan.so", "libhwasan.so", "liblsan.so", "libtsan.so", "libclang_rt.asan",
        "libclang_rt.hwasan", "libclang_rt.lsan", "libclang_rt.tsan"})
    if (library.substr(0, start.size()) == start) return true;
  return false;
}

std::string find_in_path(const std::string& name) {
  struct stat status;
  if (name.find('/') != std::string::npos) return stat(name.c_str(), &status) ? "" : name;
  const char* variable = std::getenv("PATH");
  std::string_view path = variable ? variable : "/bin:/usr/bin";
  while (true) {
    const auto colon = path.find(':');
    const std::string directory(path.substr(0, colon));
    const std::string candidate = (directory.empty() ? "." : directory) + "/" + name;
    if (is_program(candidate)) return candidate;
    if (colon == std::string_view::npos) return "";
    path.remove_prefix(colon + 1);
  }
}

Result<Program> look_at_program(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  // A program that may be executed but not read is started without being examined. The dynamic
  // loader then decides what can be loaded.
  if (fd < 0)
    return errno == EACCES ? Result<Program>(Program{})
                           : Result<Program>(Error{path + ": " + std::strerror(errno)});
  struct stat status = {};
  fstat(fd, &status);
  const MappedFile file(fd, static_cast<std::size_t>(status.st_size));
  close(fd);
  Elf64_Ehdr elf;
  if (!file.read(0, elf) || std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0) return Program{};
  if (elf.e_ident[EI_CLASS] != ELFCLASS64)
    return refused("is not a 64-bit program: Weft cannot be loaded into it; build it for 64 bits");
  if (elf.e_machine != kOwnMachine)
    return refused(
        "is a program for another processor: Weft cannot be loaded into it; build it for this one");
  return judge(file, elf, path, status);
}

}  // namespace weft::launch
