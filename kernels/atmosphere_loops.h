// The innermost loops of the transforms of kernels/atmosphere. atmosphere_harmonics.h includes this
// file once for each instruction set, so there is no #pragma once. It defines LOOPS (the name of
// the struct), TARGET (an attribute of the functions), WIDTH (doubles in a vector) and REGISTERS
// (number of vector registers), which this file undefines at its end. Latitudes lie one after the
// other in vectors; an Eight of them is one vector or several.

struct LOOPS {
  typedef double Vector __attribute__((vector_size(8 * WIDTH), may_alias));
  static constexpr int in_eight = 8 / WIDTH, in_block = tag_ranges / WIDTH;
  static Vector* vectors(Eight* eights) { return reinterpret_cast<Vector*>(eights); }
  static const Vector* vectors(const Eight* eights) {
    return reinterpret_cast<const Vector*>(eights);
  }
  // Returns how many vectors of latitudes are handled at once: two if the registers suffice, so
  // that one sum is added to while the other waits.
  static constexpr int side_of(int fields) { return 8 * fields + 6 < REGISTERS ? 2 : 1; }

  // Computes the values of some fields at the latitudes of some blocks and at their mirror images.
  // waves: for each step and field two complex coefficients, an even and an odd one. A line is
  // [m][real, imaginary]; lines lie in the order [field][Eight][north, south].
  template <int fields>
  TARGET static void to_latitudes(const Wave& wave, const Eight* sines, const double* waves,
                                  int first, int last, Eight* lines, int per_line, int per_field) {
    constexpr int side = side_of(fields), parts = 4 * fields;
    for (int block = first; block < last; ++block) {
      for (int place = 0; place < in_block; place += side) {
        const Vector* begin = vectors(wave.begins + 4 * block) + place;
        const Vector* sine = vectors(sines + 2 * block) + place;
        Vector now[side], before[side], square[side], sum[side][parts];
        for (int v = 0; v < side; ++v) {
          now[v] = begin[v], before[v] = begin[in_block + v], square[v] = sine[v] * sine[v];
          for (int i = 0; i < parts; ++i) sum[v][i] = Vector{};
        }
        for (int k = wave.firsts[block]; k < wave.count; ++k) {
          const double a = wave.steps[k].a, b = wave.steps[k].b;
          const double* one = waves + k * parts;
#pragma GCC unroll 2
          for (int v = 0; v < side; ++v) {
#pragma GCC unroll 12
            for (int i = 0; i < parts; ++i) sum[v][i] += one[i] * now[v];
            const Vector next = (a * square[v] + b) * now[v] - before[v];
            before[v] = now[v], now[v] = next;
          }
        }
        for (int v = 0; v < side; ++v) {
          for (int f = 0; f < fields; ++f) {
            const int eight = 2 * block + (place + v) / in_eight;
            Eight* line = lines + f * per_field + 2 * eight * per_line;
            Vector* north = vectors(line) + (place + v) % in_eight;
            Vector* south = vectors(line + per_line) + (place + v) % in_eight;
            for (int i = 0; i < 2; ++i) {
              const Vector even = sum[v][4 * f + i], odd = sine[v] * sum[v][4 * f + 2 + i];
              north[i * in_eight] = even + odd, south[i * in_eight] = even - odd;
            }
          }
        }
      }
    }
  }

  // Computes sums over all northern latitudes of functions times values. values: [even and odd
  // parts][block]. sums: a vector for each step and part, whose elements add_up() must still add.
  template <int fields>
  TARGET static void to_sums(const Wave& wave, const Eight* sines, const Eight* values, int blocks,
                             Eight* sums) {
    constexpr int side = side_of(fields), parts = 4 * fields;
    for (int i = 0; i < wave.count * parts; ++i) vectors(sums)[i] = Vector{};
    for (int block = 0; block < blocks; ++block) {
      for (int place = 0; place < in_block; place += side) {
        const Vector* begin = vectors(wave.begins + 4 * block) + place;
        const Vector* sine = vectors(sines + 2 * block) + place;
        Vector now[side], before[side], square[side], value[side][parts];
        for (int v = 0; v < side; ++v) {
          now[v] = begin[v], before[v] = begin[in_block + v], square[v] = sine[v] * sine[v];
          for (int i = 0; i < parts; ++i) {
            value[v][i] = vectors(values + 2 * (i * blocks + block))[place + v];
          }
        }
        for (int k = wave.firsts[block]; k < wave.count; ++k) {
          const double a = wave.steps[k].a, b = wave.steps[k].b;
          Vector* one = vectors(sums) + k * parts;
#pragma GCC unroll 12
          for (int i = 0; i < parts; ++i) {
            Vector sum = one[i];
#pragma GCC unroll 2
            for (int v = 0; v < side; ++v) sum += now[v] * value[v][i];
            one[i] = sum;
          }
#pragma GCC unroll 2
          for (int v = 0; v < side; ++v) {
            const Vector next = (a * square[v] + b) * now[v] - before[v];
            before[v] = now[v], now[v] = next;
          }
        }
      }
    }
  }
  TARGET static void add_up(const Eight* sums, int count, double* made) {
    const double* from = sums->of;
    for (int i = 0; i < count; ++i, from += WIDTH) {
      double part[WIDTH];
      for (int k = 0; k < WIDTH; ++k) part[k] = from[k];
      for (int half = WIDTH / 2; half > 0; half /= 2) {
        for (int k = 0; k < half; ++k) part[k] += part[k + half];
      }
      made[i] = part[0];
    }
  }

  // Does one pass of Stockham's Fourier transform, on numbers in the order [real, imaginary]: from
  // `stride` interleaved transforms of 4 * quarter points each to four times as many of `quarter`
  // points.
  TARGET static void by_four(const Eight* from, Eight* to, int quarter, int stride,
                             const double* turns) {
    for (int p = 0; p < quarter; ++p, turns += 6) {
      for (int q = 0; q < stride * in_eight; ++q) {
        const int place = q / in_eight * 2 * in_eight + q % in_eight;
        const Vector* in = vectors(from) + p * stride * 2 * in_eight + place;
        Vector* out = vectors(to) + 4 * p * stride * 2 * in_eight + place;
        const int away = quarter * stride * 2 * in_eight, next = stride * 2 * in_eight;
        const Vector a = in[0], b = in[away], c = in[2 * away], d = in[3 * away];
        in += in_eight;
        const Vector ai = in[0], bi = in[away], ci = in[2 * away], di = in[3 * away];
        const Vector ac = a + c, aci = ai + ci, less = a - c, lessi = ai - ci;
        // Turned + i turnedi is -i (b - d).
        const Vector bd = b + d, bdi = bi + di, turned = bi - di, turnedi = d - b;
        out[0] = ac + bd, out[in_eight] = aci + bdi;
        const Vector sum[3] = {less + turned, ac - bd, less - turned};
        const Vector sumi[3] = {lessi + turnedi, aci - bdi, lessi - turnedi};
        for (int i = 0; i < 3; ++i) {
          const double x = turns[2 * i], y = turns[2 * i + 1];
          out[(i + 1) * next] = x * sum[i] - y * sumi[i];
          out[(i + 1) * next + in_eight] = x * sumi[i] + y * sum[i];
        }
      }
    }
  }
  // Does the last pass if transforms of 2 points are left.
  TARGET static void by_two(const Eight* from, Eight* to, int stride) {
    const Vector* in = vectors(from);
    const int away = stride * 2 * in_eight;
    for (int q = 0; q < away; ++q) {
      vectors(to)[q] = in[q] + in[q + away], vectors(to)[q + away] = in[q] - in[q + away];
    }
  }

  // Computes a complex line of half the length from the waves m = 0, …, most of a real line. Its
  // values are the even and the odd values of the real line, with real and imaginary parts
  // exchanged, so that a forward transform becomes a backward one.
  TARGET static void to_half(const Eight* line, int most, int half, const Complex* turns,
                             Eight* to) {
    for (int u = 0; u < in_eight; ++u) {
      const Vector* in = vectors(line) + u;
      Vector* out = vectors(to) + u;
      out[0] = out[in_eight] = in[0];
      for (int k = 1; k <= half / 2; ++k) {
        Vector a = {}, ai = {}, c = {}, ci = {};
        const int other = half - k;
        if (k <= most) a = in[2 * k * in_eight], ai = in[(2 * k + 1) * in_eight];
        if (other <= most) c = in[2 * other * in_eight], ci = in[(2 * other + 1) * in_eight];
        const double x = turns[k].real(), y = turns[k].imag();
        const Vector less = a - c, lessi = ai + ci;
        const Vector turned = x * less - y * lessi, turnedi = x * lessi + y * less;
        out[2 * k * in_eight] = ai - ci + turned;
        out[(2 * k + 1) * in_eight] = a + c - turnedi;
        out[2 * other * in_eight] = turned - ai + ci;
        out[(2 * other + 1) * in_eight] = a + c + turnedi;
      }
    }
  }
  // Does the reverse of to_half(): computes the waves from those of the even and the odd values,
  // and divides by the line's length.
  TARGET static void from_half(const Eight* from, int most, int half, const Complex* turns,
                               Eight* line) {
    const double share = 0.25 / half;
    for (int u = 0; u < in_eight; ++u) {
      const Vector* in = vectors(from) + u;
      Vector* out = vectors(line) + u;
      out[0] = 2 * share * (in[0] + in[in_eight]), out[in_eight] = Vector{};
      for (int k = 1; k <= most; ++k) {
        const Vector a = in[2 * k * in_eight], ai = in[(2 * k + 1) * in_eight];
        const int other = half - k;
        const Vector c = in[2 * other * in_eight], ci = in[(2 * other + 1) * in_eight];
        const double x = turns[k].real(), y = turns[k].imag();
        const Vector less = a - c, lessi = ai + ci;
        out[2 * k * in_eight] = share * (a + c + x * lessi - y * less);
        out[(2 * k + 1) * in_eight] = share * (ai - ci - x * less - y * lessi);
      }
    }
  }

  // Carries out as many multiply-adds as the processor can: 12 vectors of them per round.
  TARGET static double multiply_adds(int rounds) {
    Vector sum[12] = {};
    const double half = 0.5, one = 1;
    for (int k = 0; k < rounds; ++k) {
#pragma GCC unroll 12
      for (int i = 0; i < 12; ++i) sum[i] = sum[i] * half + one;
    }
    double made = 0;
    for (int i = 0; i < 12; ++i) made += sum[i][0];
    return made;
  }
  static constexpr int width = WIDTH;
};

#undef LOOPS
#undef TARGET
#undef WIDTH
#undef REGISTERS
