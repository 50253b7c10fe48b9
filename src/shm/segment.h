// Segment: memory shared by processes of one node that has no name in any file system. System V and
// POSIX segments outlive a killed job; this one ends with the last process that maps it. One
// process creates it (memfd_create), and the others open that process's descriptor in /proc. Pages
// are allocated at their first access, on the NUMA node of the accessing thread, even if the
// process locks its memory (mlockall), and are left out of core dumps. A forked child inherits the
// mapping: the end of the child affects nobody, but the pages are kept until then.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace weft {

// SegmentName: describes a segment to other processes, as plain bytes. In another container, or
// later, the same /proc path may lead to another file; device, inode and token reveal that.
struct SegmentName {
  std::int32_t process;
  std::int32_t descriptor;
  std::int64_t bytes;
  std::uint64_t device;
  std::uint64_t inode;
  std::uint64_t token;
};

class Segment {
 public:
  // Says how much of the segment is mapped at data(). The rest takes no addresses until map_part()
  // maps it.
  enum class Mapped : std::uint8_t { all, first_page };

  // Creates a zeroed segment; `bytes` must be positive and is rounded up to whole pages.
  static Result<Segment> create(std::int64_t bytes, Mapped mapped = Mapped::all);
  // Attaches a segment that another process on this node with the same user has created. Returns an
  // error if `name` no longer leads to that segment.
  static Result<Segment> attach(const SegmentName& name, Mapped mapped = Mapped::all);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment other) noexcept;
  ~Segment();

  std::byte* data() const { return data_; }
  // Bytes of the segment, including pages that are not mapped.
  std::int64_t bytes() const { return name_.bytes; }
  // Maps some of the segment's pages at other addresses, for the life of the process, even if this
  // object ends. Returns nullptr if the system refuses.
  std::byte* map_part(std::int64_t offset, std::int64_t bytes) const;
  // Returns the description by which others can attach this segment. It is valid until the
  // segment's creator calls close_to_others() or ends.
  const SegmentName& name() const { return name_; }
  // Returns the file descriptor of the segment's creator; -1 in other processes, and after it was
  // closed.
  int descriptor() const { return owns_descriptor() ? descriptor_ : -1; }
  // Makes name() invalid, so that no further process can attach the segment. Processes that have
  // attached it keep it.
  void close_to_others();
  // Promises that the MPI library never sees an address in the segment, so that it need not be told
  // when pages are unmapped. UCX would queue each such notice until it registers memory next.
  void keep_from_library() { is_private_ = true; }
  // Zeroes these pages for all processes that map them, and returns them to the system until their
  // next access. Returns false if the system refuses, for instance because the application has
  // locked the pages.
  bool clear_pages(std::int64_t offset, std::int64_t bytes) const;
  // Tells the MPI library that the pages at these addresses will change, unless it never sees the
  // segment.
  void forget_pages() const;

 private:
  Segment(const SegmentName& name, std::int64_t mapped_bytes, std::byte* data)
      : name_(name), mapped_bytes_(mapped_bytes), data_(data) {}
  static Result<Segment> map(const SegmentName& name, int descriptor, Mapped mapped);
  bool owns_descriptor() const;

  SegmentName name_;
  std::int64_t mapped_bytes_;
  int descriptor_ = -1;      // creator's file descriptor; the application may have closed it
  bool is_private_ = false;  // true if the MPI library never sees an address in the segment
  std::byte* data_;          // address of the mapping; nullptr after this object was moved from
};

// Returns whether the process's address space is limited (ulimit -v). The limit counts even unused
// addresses.
bool addresses_are_limited();

}  // namespace weft
