#include "runtime/start/choice.h"

#include <bit>

#include "runtime/adaptive/learnt.h"
#include "transport/mpi/kernels.h"

namespace weft {
namespace {

// Returns the engine that can carry out the call: `asked` if possible, otherwise a replacement. One
// reason for a replacement: collectives that the MPI library carries out as a whole must be started
// in the same order on all ranks, but persistent collectives need not be.
Engine possible_engine(const Runtime& runtime, Engine asked, Use use, bool by_callers) {
  const bool by_caller = use == Use::blocking || runtime.in_memory_only() || by_callers;
  if (by_caller) return Engine::function;
  const bool whole = asked == Engine::tcc || asked == Engine::assist;
  return whole && use == Use::persistent ? Engine::thread : asked;
}

// Returns the form of a choice of engine agent in which only the first rank of each node sends, if
// all nodes have an agent there: then the agents carry the whole collective out.
Choice for_agents(const Runtime& runtime, const Communicator& communicator, const Shape& shape,
                  Choice choice) {
  if (choice.engine != Engine::agent || !runtime.resources().agents_lead) return choice;
  if (!choice.algorithm || is_named(runtime, communicator, shape)) return choice;
  const Algorithm* const one_leader = one_leader_for(*choice.algorithm, shape);
  if (one_leader) choice.algorithm = one_leader;
  return choice;
}

Choice choice_for(const Runtime& runtime, const Communicator& communicator, Use use,
                  const Shape& shape, bool by_callers) {
  const Engine asked = possible_engine(runtime, engine_for(runtime, communicator), use, by_callers);
  const std::string* hint = communicator.hints.algorithm_for(shape.kind);
  const bool replayed = use == Use::persistent;
  const Choice choice = choose(runtime.config, runtime.library, asked, shape, replayed, hint);
  if (choice.engine == Engine::native) return choice;
  if (runtime.threads_allowed()) return for_agents(runtime, communicator, shape, choice);
  return choose(runtime.config, runtime.library, Engine::function, shape, replayed, hint);
}

// Returns whether engine auto may learn about non-blocking calls. It may learn about all of them,
// or only about those that are carried out in the node's shared memory.
bool learns_requests(const Runtime& runtime, const Call& call, const Choice& rule) {
  if (!runtime.learns_in_memory()) return runtime.learns_by_messages();
  const bool has_kernel = reduces(call.kind) && kernel_for(call.op, call.recvtype);
  return needs_no_library(call.kind, has_kernel) && rule.algorithm &&
         needs_node(rule.algorithm->needs);
}

// Returns whether engine auto may learn about this call, because the user has left the choice open.
// The result is equal on all ranks.
bool may_learn(const PlanRequest& asked, const Shape& shape, const Choice& rule) {
  const auto& [runtime, call, communicator, use] = asked;
  const bool may = use == Use::blocking
                       ? learns_blocking(runtime, communicator, call.kind)
                       : use == Use::request && learns_requests(runtime, call, rule) &&
                             engine_for(runtime, communicator) == Engine::automatic;
  return may && !is_named(runtime, communicator, shape);
}

CallClassKey key_of(const Shape& shape, Use use, Kernel kernel) {
  const auto bytes = agreed_bytes(shape);
  return {shape.kind,
          bytes ? static_cast<int>(std::bit_width(static_cast<std::uint64_t>(*bytes))) : -1,
          kernel != nullptr, use == Use::blocking};
}

// Returns the choice of the fixed rule for a non-blocking call on a single node.
Choice rule_in_memory(const Runtime& runtime, const Shape& shape, const Choice& choice) {
  if (!wins_as_request(runtime.library, shape, runtime.ranks_share_cores()))
    return {Engine::native, nullptr};
  return {engine_in_memory(runtime, shape, true), choice.algorithm};
}

std::vector<Choice> variants_of(const Runtime& runtime, const CallClassKey& key, const Shape& shape,
                                const Choice& rule, Processor processor) {
  const Config& config = runtime.config;
  const Library library = runtime.library;
  if (key.blocking) {
    const bool is_wefts = shape.on_one_node && needs_node(default_algorithm(shape).needs) &&
                          wins_as_request(library, shape, runtime.ranks_share_cores());
    return variants_for_blocking(config, library, shape, processor, is_wefts);
  }
  if (!runtime.learns_in_memory()) {
    JobResources resources = runtime.resources();
    resources.processor = processor;
    return variants_for(config, library, shape, rule, resources);
  }
  return variants_in_memory(config, library, shape, rule_in_memory(runtime, shape, rule),
                            runtime.has_spare_core(), processor);
}

// Returns the call class with this key, after making it if necessary. memory: where its ranks
// compare times; nullopt if they do so by messages.
CallClass* call_class_with(const CallClassKey& key, const std::optional<SharedWords>& memory,
                           const PlanRequest& asked, const Shape& shape, const Choice& rule) {
  const auto& [runtime, call, communicator, use] = asked;
  CallClasses& call_classes = communicator.attributes.find_or_make<CallClasses>();
  return call_classes.find_or_make(key, [&]() -> std::unique_ptr<CallClass> {
    auto variants = variants_of(runtime, key, shape, rule, communicator.processor);
    // Engines assist and tcc call whole collectives of the MPI library, for which the internal
    // communicator must not be shared.
    if (!communicator.has_own)
      std::erase_if(variants, [](const Choice& variant) {
        return variant.engine == Engine::assist || variant.engine == Engine::tcc;
      });
    const Learn learn = runtime.config.learn;
    Learner::Settings settings;
    settings.seed =
        static_cast<std::uint64_t>(key.kind) * 64 + static_cast<std::uint64_t>(key.size_class + 1);
    settings.known = Learnt::own().find(communicator, key, variants);
    const int joined = joined_among(variants);
    settings.conditional = joined >= 0 ? joined : worker_among(variants);
    settings.variants_of_short = variants_by_callers(variants);
    settings.by_own_time = key.blocking;
    settings.by_least_time = key.blocking && waits_for_all(key.kind);
    settings.switches = learn == Learn::switching;
    settings.tries = learn != Learn::use;
    settings.has_free_slots = call_classes.has_free_slots();
    settings.checks_often = memory.has_value();
    if (memory && !agreed_bytes(shape))
      settings.confirming = CallsByLength::Length::kNoticesAfter + settings.confirming;
    auto call_class = std::make_unique<CallClass>(call_classes, call.form, key, std::move(variants),
                                                  settings, runtime.trial_budget);
    if (memory) call_class->in_memory.emplace(*memory, communicator.size);
    if (joined >= 0) call_class->to_tell = std::make_unique<const Shape>(shape);
    return call_class;
  });
}

// Returns the calls of this kind on a single node whose size no rank knows; nullptr if there is no
// memory for their classes.
CallsByLength* calls_by_length(const PlanRequest& asked, CallClassKey key, const Shape& shape,
                               const Choice& rule) {
  Communicator& communicator = asked.communicator;
  CallClasses& call_classes = communicator.attributes.find_or_make<CallClasses>();
  const auto make = [&]() -> std::unique_ptr<CallsByLength> {
    const auto lengths = call_classes.memory_for(key, communicator.room);
    if (!lengths) return nullptr;
    CallsByLength::Classes classes{};
    for (std::size_t length = 0; length < classes.size(); ++length) {
      key.size_class = CallsByLength::Length::kDigits[length];
      const auto memory = call_classes.memory_for(key, communicator.room);
      classes[length] = call_class_with(key, memory, asked, shape, rule);
    }
    return std::make_unique<CallsByLength>(*lengths, communicator.size, classes);
  };
  return communicator.attributes.find_or_make<AllCallsByLength>().find_or_make(key.kind,
                                                                               key.blocking, make);
}

// Returns the class of similar calls to which the call belongs, or those of calls whose size no
// rank knows. Returns neither if engine auto learns nothing about such calls.
ChoiceResult learnt_choice(const PlanRequest& asked, const Shape& shape, const Choice& rule) {
  const auto& [runtime, call, communicator, use] = asked;
  const Kernel kernel = reduces(call.kind) ? kernel_for(call.op, call.recvtype) : nullptr;
  const CallClassKey key = key_of(shape, use, kernel);
  std::optional<SharedWords> memory;
  if (runtime.learns_in_memory()) {
    if (key.size_class < 0) return {.by_length = calls_by_length(asked, key, shape, rule)};
    CallClasses& call_classes = communicator.attributes.find_or_make<CallClasses>();
    memory = call_classes.memory_for(key, communicator.room);
    if (!memory) return {};
  }
  return {.call_class = call_class_with(key, memory, asked, shape, rule)};
}

// Returns engine and algorithm for a call of this shape that takes the variant with this index. For
// variant 0 of a non-blocking call this is the choice of the fixed rule. Otherwise it is the entry
// in the list of variants, if its algorithm can handle the shape.
Choice choice_on(const Runtime& runtime, const Communicator& communicator, const Shape& shape,
                 const CallClass& call_class, std::size_t variant) {
  if (variant == 0 && !call_class.key.blocking)
    return choice_for(runtime, communicator, Use::request, shape, false);
  const Choice& choice = call_class.variants[variant];
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

ChoiceResult chosen_for(const PlanRequest& asked, const Eligible& eligible) {
  const auto& [runtime, call, communicator, use] = asked;
  const Choice rule = choice_for(runtime, communicator, use, eligible.shape, eligible.by_callers);
  if (!eligible.by_callers && may_learn(asked, eligible.shape, rule))
    if (const ChoiceResult learnt = learnt_choice(asked, eligible.shape, rule); learnt.is_learnt())
      return learnt;
  const bool learns = use == Use::blocking && learns_blocking(runtime, communicator, call.kind);
  if (learns) return {.declined = outside_memory(runtime)};
  if (rule.engine == Engine::native) return {.declined = Reason::rule};
  return {.choice = rule};
}

// Returns the engine and algorithm for the variant with this index. Variant 0 of a non-blocking
// call is the fixed rule, which is computed for each shape.
ChoiceResult chosen_at(const PlanRequest& asked, const Eligible& eligible,
                       const CallClass& call_class, int variant) {
  const auto place = static_cast<std::size_t>(variant);
  const bool as_listed = variant > 0 || call_class.key.blocking;
  if (as_listed && call_class.variants[place].engine == Engine::native)
    return {.declined = Reason::learnt};
  const Choice choice =
      choice_on(asked.runtime, asked.communicator, eligible.shape, call_class, place);
  if (choice.engine == Engine::native) return {.declined = Reason::learnt};
  return {.choice = choice, .by_rule = !as_listed};
}

}  // namespace weft
