// Implements Memory: computes when copies end. Each NUMA node has one planned event: the end of the
// copy that ends first.
#include "sim/memory.h"

#include <algorithm>
#include <cstddef>

namespace weft::sim {

Memory::Memory(Events& events, int domains, double core_rate, double domain_rate)
    : events_(events),
      domains_(static_cast<std::size_t>(domains)),
      core_rate_(core_rate),
      domain_rate_(domain_rate) {}

double Memory::rate(const Domain& domain) const {
  return std::min(core_rate_, domain_rate_ / static_cast<double>(domain.copies.size()));
}

void Memory::bring_up(Domain& domain, double now_us) const {
  if (!domain.copies.empty()) domain.moved += (now_us - domain.moved_at_us) * rate(domain);
  domain.moved_at_us = now_us;
}

void Memory::plan(int index, double now_us) {
  Domain& domain = domains_[static_cast<std::size_t>(index)];
  double end_us = kNever;
  if (!domain.copies.empty())
    end_us = now_us + std::max(0.0, domain.copies.back().end - domain.moved) / rate(domain);
  if (end_us == domain.planned_us) return;
  domain.planned_us = end_us;
  ++domain.version;
  if (end_us < kNever) events_.plan(end_us, Event::Kind::copy, index, domain.version);
}

void Memory::begin(int index, int thread, double bytes, double now_us) {
  Domain& domain = domains_[static_cast<std::size_t>(index)];
  bring_up(domain, now_us);
  const Copy copy{domain.moved + bytes, thread};
  const auto at = std::partition_point(domain.copies.begin(), domain.copies.end(),
                                       [&](const Copy& other) { return other.end > copy.end; });
  domain.copies.insert(at, copy);
  plan(index, now_us);
}

double Memory::withdraw(int index, int thread, double now_us) {
  Domain& domain = domains_[static_cast<std::size_t>(index)];
  bring_up(domain, now_us);
  const auto at = std::find_if(domain.copies.begin(), domain.copies.end(),
                               [&](const Copy& copy) { return copy.thread == thread; });
  const double left = std::max(0.0, at->end - domain.moved);
  domain.copies.erase(at);
  plan(index, now_us);
  return left;
}

int Memory::ended(int index, std::uint32_t version, double now_us) {
  Domain& domain = domains_[static_cast<std::size_t>(index)];
  if (version != domain.version) return -1;
  bring_up(domain, now_us);
  const int thread = domain.copies.back().thread;
  domain.copies.pop_back();
  domain.planned_us = kNever;
  plan(index, now_us);
  return thread;
}

}  // namespace weft::sim
