// A bound on the requests that are inside at the same time, those that wait for a worker included.
#pragma once

#include <atomic>
#include <optional>
#include <utility>

class Gate {
  public:
    explicit Gate(int places) : places_(places) {}

    // One place, given back when it goes out of scope.
    class Place {
      public:
        explicit Place(std::atomic<int> &taken) : taken_(&taken) {}
        Place(Place &&other) noexcept : taken_(std::exchange(other.taken_, nullptr)) {}
        Place &operator=(Place &&) = delete;
        ~Place() {
            if (taken_) --*taken_;
        }

      private:
        std::atomic<int> *taken_;
    };

    // Nothing where all places are taken.
    std::optional<Place> enter() {
        if (++taken_ > places_) {
            --taken_;
            return std::nullopt;
        }
        return Place(taken_);
    }

    int taken() const { return taken_; }

  private:
    const int places_;
    std::atomic<int> taken_{0};
};
