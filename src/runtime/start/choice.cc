#include "runtime/start/choice.h"

#include <bit>

#include "runtime/adaptive/learnt.h"
#include "transport/mpi/kernels.h"

namespace weft {
namespace {

// Whole collectives of the library's must be started in the same order on all ranks, which
// persistent ones need not be.
Engine possible_engine(const Runtime& runtime, Engine asked, Use use, bool by_callers) {
  const bool by_caller = use == Use::blocking || runtime.in_memory_only() || by_callers;
  if (by_caller) return Engine::function;
  const bool whole = asked == Engine::tcc || asked == Engine::assist;
  return whole && use == Use::persistent ? Engine::thread : asked;
}

Choice choice_for(const Runtime& runtime, const Communicator& communicator, Use use,
                  const Shape& shape, bool by_callers) {
  const Engine asked = possible_engine(runtime, engine_for(runtime, communicator), use, by_callers);
  const std::string* hint = communicator.hints.algorithm_for(shape.kind);
  const bool replayed = use == Use::persistent;
  const Choice choice = choose(runtime.config, runtime.library, asked, shape, replayed, hint);
  if (choice.engine == Engine::native || runtime.threads_allowed()) return choice;
  return choose(runtime.config, runtime.library, Engine::function, shape, replayed, hint);
}

// Returns whether non-blocking calls may be learnt about: all, or those that the node's memory
// serves.
bool learns_requests(const Runtime& runtime, const Call& call, const Choice& rule) {
  if (!runtime.learns_in_memory()) return runtime.learns_by_messages();
  const bool has_kernel = reduces(call.kind) && kernel_for(call.op, call.recvtype);
  return needs_no_library(call.kind, has_kernel) && rule.algorithm &&
         needs_node(rule.algorithm->needs);
}

// Returns whether the user leaves the choice open, so that it may change from call to call. The
// same on all ranks.
bool may_learn(const Asked& asked, const Shape& shape, const Choice& rule) {
  const auto& [runtime, call, communicator, use] = asked;
  const bool may = use == Use::blocking
                       ? learns_blocking(runtime, communicator)
                       : use == Use::request && learns_requests(runtime, call, rule) &&
                             engine_for(runtime, communicator) == Engine::automatic;
  return may && !is_named(runtime, communicator, shape);
}

SiteKey key_of(const Shape& shape, Use use, Kernel kernel) {
  const auto bytes = agreed_bytes(shape);
  return {shape.kind,
          bytes ? static_cast<int>(std::bit_width(static_cast<std::uint64_t>(*bytes))) : -1,
          kernel != nullptr, use == Use::blocking};
}

// Returns the rule's way of non-blocking calls inside one node.
Choice rule_in_memory(const Runtime& runtime, const Shape& shape, const Choice& choice) {
  if (!wins_as_request(runtime.library, shape, runtime.ranks_share_cores()))
    return {Engine::native, nullptr};
  return {engine_in_memory(runtime, shape, true), choice.algorithm};
}

std::vector<Choice> ways_of(const Runtime& runtime, const SiteKey& key, const Shape& shape,
                            const Choice& rule, Processor processor) {
  const Config& config = runtime.config;
  const Library library = runtime.library;
  if (key.blocking) return ways_for_blocking(config, library, shape, processor);
  if (!runtime.learns_in_memory()) {
    Beside beside = runtime.beside();
    beside.processor = processor;
    return ways_for(config, library, shape, rule, beside);
  }
  return ways_in_memory(config, library, shape, rule_in_memory(runtime, shape, rule),
                        runtime.has_spare_core(), processor);
}

// Returns nullptr if nothing is learnt about such calls.
Site* site_of(const Asked& asked, const Shape& shape, const Choice& rule) {
  const auto& [runtime, call, communicator, use] = asked;
  const Kernel kernel = reduces(call.kind) ? kernel_for(call.op, call.recvtype) : nullptr;
  const SiteKey key = key_of(shape, use, kernel);
  Sites& sites = communicator.attributes.find_or_make<Sites>();
  std::optional<SharedWords> memory;
  if (runtime.learns_in_memory()) {
    memory = sites.memory_for(key, communicator.room);
    if (!memory) return nullptr;
  }
  return sites.find_or_make(key, [&]() -> std::unique_ptr<Site> {
    auto ways = ways_of(runtime, key, shape, rule, communicator.processor);
    // These ways need a communicator of their own.
    if (!communicator.has_own)
      std::erase_if(ways, [](const Choice& way) {
        return way.engine == Engine::assist || way.engine == Engine::tcc;
      });
    const Learn learn = runtime.config.learn;
    Learner::Settings settings;
    settings.seed =
        static_cast<std::uint64_t>(key.kind) * 64 + static_cast<std::uint64_t>(key.size_class + 1);
    settings.known = Learnt::own().find(communicator, key, ways);
    settings.conditional = worker_among(ways);
    settings.ways_of_short = ways_by_callers(ways);
    settings.by_own_time = key.blocking;
    settings.by_least_time = key.blocking && waits_for_all(key.kind);
    settings.switches = learn == Learn::switching;
    settings.tries = learn != Learn::use;
    settings.has_free_slots = sites.has_free_slots();
    auto site = std::make_unique<Site>(sites, call.form, key, std::move(ways), settings,
                                       runtime.trial_budget);
    if (memory) site->in_memory.emplace(*memory, communicator.size);
    return site;
  });
}

// Returns what differs by shape within a class of sizes: the rule's choice, or a listed one if it
// applies.
Choice choice_on(const Runtime& runtime, const Communicator& communicator, const Shape& shape,
                 const Site& site, std::size_t way) {
  if (way == 0) return choice_for(runtime, communicator, Use::request, shape, false);
  const Choice& choice = site.ways[way];
  const bool is_right = !choice.algorithm || applies(*choice.algorithm, shape);
  return is_right ? choice : choose(runtime.config, runtime.library, choice.engine, shape);
}

}  // namespace

bool is_named(const Runtime& runtime, const Communicator& communicator, const Shape& shape) {
  const std::string* hint = communicator.hints.algorithm_for(shape.kind);
  return why_settled(runtime.config, shape, hint) != nullptr;
}

Engine engine_in_memory(const Runtime& runtime, const Shape& shape, bool alone) {
  const bool is_long = agreed_bytes(shape).value_or(0) >= kWorthAThread_bytes;
  const bool may = alone && runtime.has_memory_thread() && runtime.has_spare_core();
  return is_long && may ? Engine::thread : Engine::function;
}

Chosen chosen_for(const Asked& asked, const Eligible& eligible) {
  const auto& [runtime, call, communicator, use] = asked;
  const Choice rule = choice_for(runtime, communicator, use, eligible.shape, eligible.by_callers);
  if (!eligible.by_callers && may_learn(asked, eligible.shape, rule))
    if (Site* site = site_of(asked, eligible.shape, rule)) return {.site = site};
  const bool learns = use == Use::blocking && learns_blocking(runtime, communicator);
  if (learns) return {.declined = outside_memory(runtime)};
  if (rule.engine == Engine::native) return {.declined = Reason::rule};
  return {.choice = rule};
}

// The rule's way is found anew for each shape; for blocking calls it is the library's.
Chosen chosen_at(const Asked& asked, const Eligible& eligible, const Site& site, int way) {
  const auto place = static_cast<std::size_t>(way);
  const bool as_listed = way > 0 || site.key.blocking;
  if (as_listed && site.ways[place].engine == Engine::native) return {.declined = Reason::learnt};
  const Choice choice = choice_on(asked.runtime, asked.communicator, eligible.shape, site, place);
  if (choice.engine == Engine::native) return {.declined = Reason::learnt};
  return {.choice = choice, .by_rule = !as_listed};
}

}  // namespace weft
