// Computes the model of the split tree (split_model.h). It uses integers wherever the paper rounds,
// so that floating-point rounding decides nothing.
#include "select/split_model.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <set>
#include <tuple>

namespace weft {
namespace {

int divide_up(int number, int by) {
  return (number + by - 1) / by;
}

// Returns the number of subtrees that are left after `levels` levels of the tree are done.
int roots_after(int ranks, int levels, int arity) {
  for (int level = 0; level < levels; ++level) ranks = divide_up(ranks, arity);
  return ranks;
}

// Returns the time of one message of a level. Levels are counted from 1 at the leaves.
double message_time(const SplitModel& model, int level) {
  const auto last = model.level_cost.size() - 1;
  double time = model.level_cost[std::min(static_cast<std::size_t>(level - 1), last)];
  for (int below = 1; model.grows && below < level; ++below) time *= model.arity;
  return time;
}

// Returns the number of messages that the busiest rank receives at a level, one after the other.
int messages_in_a_row(int ranks, int level, int arity) {
  return std::min(arity, roots_after(ranks, level - 1, arity)) - 1;
}

double levels_on_all_cores(const SplitModel& model, int ranks, int levels) {
  double time = 0;
  for (int level = 1; level <= levels; ++level)
    time += messages_in_a_row(ranks, level, model.arity) * message_time(model, level);
  return time;
}

double levels_in_turn(const SplitModel& model, int ranks, int first, int last, int cores) {
  double time = 0;
  for (int level = first; level <= last; ++level) {
    const int folded = divide_up(level_messages(ranks, level, model.arity), cores);
    time +=
        std::max(folded, messages_in_a_row(ranks, level, model.arity)) * message_time(model, level);
  }
  return time;
}

// Simulates the upper levels of a tree as a list of messages that `cores` cores take as soon as
// possible. Among those that can start, a message of the lowest level goes first, because a thread
// that polls one rank after the other finds it first.
class Dataflow {
 public:
  Dataflow(const SplitModel& model, int ranks, int first, int last)
      : model_(model), first_(first), last_(last) {
    leaves_ = roots_after(ranks, first - 1, model.arity);
    next_.assign(static_cast<std::size_t>(leaves_), {first, 1});
    for (int leaf = 0; leaf < leaves_; ++leaf) settle(leaf);
    for (int leaf = 0; leaf < leaves_; ++leaf) offer(leaf);
  }

  double run(int cores) {
    double now = 0;
    while (!ready_.empty() || !running_.empty()) {
      for (; cores > 0 && !ready_.empty(); --cores) {
        const auto [level, root] = *ready_.begin();
        ready_.erase(ready_.begin());
        running_.push({now + message_time(model_, level), root});
      }
      now = std::get<0>(running_.top());
      for (; !running_.empty() && std::get<0>(running_.top()) == now; ++cores) {
        const int root = std::get<1>(running_.top());
        running_.pop();
        taken(root);
      }
    }
    return now;
  }

 private:
  struct Message {
    // level: the level of the message. sender: its number (from 1) among the messages that the root
    // of a subtree receives at this level.
    int level, sender;
  };

  int stride(int level) const {
    int stride = 1;
    for (int below = first_; below < level; ++below) stride *= model_.arity;
    return stride;
  }

  // Returns whether `leaf` receives messages at this level. Each leaf of the upper tree is also the
  // root of a subtree, up to the level at which it sends to its parent.
  bool takes_at(int leaf, int level) const {
    return level <= last_ && leaf % (stride(level) * model_.arity) == 0;
  }
  int sender_of(int root) const {
    const Message& next = next_[static_cast<std::size_t>(root)];
    return root + next.sender * stride(next.level);
  }
  bool is_done(int leaf) const {
    return !takes_at(leaf, next_[static_cast<std::size_t>(leaf)].level);
  }

  // Advances to the next message that `root` receives. If the tree is not complete, some messages
  // do not exist and are skipped.
  void settle(int root) {
    Message& next = next_[static_cast<std::size_t>(root)];
    while (!is_done(root) && (next.sender >= model_.arity || sender_of(root) >= leaves_))
      next = {next.level + 1, 1};
  }

  void offer(int root) {
    if (!is_done(root) && is_done(sender_of(root)))
      ready_.insert({next_[static_cast<std::size_t>(root)].level, root});
  }

  void taken(int root) {
    ++next_[static_cast<std::size_t>(root)].sender;
    settle(root);
    offer(root);
    if (!is_done(root)) return;
    // The root has received all its messages, so it can now send. If its receiver waits for this
    // message, the message can start.
    const int level = next_[static_cast<std::size_t>(root)].level;
    if (level > last_) return;
    const int receiver = root - root % (stride(level) * model_.arity);
    if (!is_done(receiver) && sender_of(receiver) == root) offer(receiver);
  }

  const SplitModel& model_;
  const int first_, last_;
  int leaves_ = 0;
  std::vector<Message> next_;             // next message that each leaf receives, indexed by leaf
  std::set<std::tuple<int, int>> ready_;  // messages that can start: (level, receiver)
  // A message in transit: (time at which it ends, receiver).
  using Running = std::tuple<double, int>;
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running_;
};

double on_communication_cores(const SplitModel& model, int ranks, int split) {
  const int first = split + 1, last = tree_levels(ranks, model.arity);
  const int cores = model.cores - ranks;
  if (first > last) return 0;
  if (model.dataflow) return Dataflow(model, ranks, first, last).run(cores);
  return levels_in_turn(model, ranks, first, last, cores);
}

}  // namespace

int tree_levels(int ranks, int arity) {
  int levels = 0;
  for (; ranks > 1; ++levels) ranks = divide_up(ranks, arity);
  return levels;
}

int level_messages(int ranks, int level, int arity) {
  return roots_after(ranks, level - 1, arity) - roots_after(ranks, level, arity);
}

double blocking_time(const SplitModel& model, int ranks) {
  return levels_on_all_cores(model, ranks, tree_levels(ranks, model.arity));
}

double computation_time(const SplitModel& model, int ranks) {
  const double on_all =
      model.computation > 0 ? model.computation : blocking_time(model, model.cores);
  return model.cores * on_all / ranks;
}

SplitTime split_time(const SplitModel& model, int ranks, int split) {
  const int levels = tree_levels(ranks, model.arity);
  split = ranks < model.cores ? std::min(split, levels) : levels;
  SplitTime time;
  time.application = levels_on_all_cores(model, ranks, split);
  time.communication = on_communication_cores(model, ranks, split);
  time.computation = computation_time(model, ranks);
  time.total = time.application + std::max(time.communication, time.computation);
  return time;
}

int best_split(const SplitModel& model, int ranks) {
  const int levels = tree_levels(ranks, model.arity);
  if (ranks >= model.cores) return levels;
  int best = 0;
  double least = split_time(model, ranks, 0).total;
  for (int split = 1; split <= levels; ++split) {
    const double total = split_time(model, ranks, split).total;
    if (total >= least) continue;
    best = split;
    least = total;
  }
  return best;
}

int best_ranks(const SplitModel& model) {
  int best = std::min(2, model.cores);
  double least = split_time(model, best, best_split(model, best)).total;
  for (int ranks = best + 1; ranks <= model.cores; ++ranks) {
    const double total = split_time(model, ranks, best_split(model, ranks)).total;
    if (total >= least) continue;
    best = ranks;
    least = total;
  }
  return best;
}

}  // namespace weft
