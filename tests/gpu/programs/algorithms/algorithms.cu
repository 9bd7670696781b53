// Algorithms of Thrust and CUB on random input, compared with the standard library's on the host.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cub/cub.cuh>
#include <map>
#include <numeric>
#include <random>
#include <thrust/binary_search.h>
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/merge.h>
#include <thrust/partition.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/scan.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>
#include <vector>

static int failures = 0, checks = 0;
static std::mt19937_64 source(12345);

static void check(bool right, const char *what, const char *type, size_t n) {
    checks++;
    if (!right) {
        failures++;
        printf("%s of %zu %s is wrong\n", what, n, type);
    }
}

template <class T> std::vector<T> numbers(size_t n, uint64_t limit) {
    std::vector<T> all(n);
    for (auto &x : all) x = T(int64_t(source() % limit) - int64_t(std::is_signed<T>::value ? limit / 2 : 0));
    return all;
}

template <class T> std::vector<T> host(const thrust::device_vector<T> &v) {
    std::vector<T> all(v.size());
    thrust::copy(v.begin(), v.end(), all.begin());
    return all;
}

template <class T> struct IsOdd {
    __host__ __device__ bool operator()(T x) const { return int64_t(x) & 1; }
};

template <class T> struct Square {
    __host__ __device__ uint64_t operator()(T x) const { return uint64_t(int64_t(x) * int64_t(x)); }
};

template <class T> void all_of_type(const char *type, size_t n, uint64_t limit) {
    auto a = numbers<T>(n, limit), b = numbers<T>(n / 2 + 1, limit);
    thrust::device_vector<T> da(a.begin(), a.end()), db(b.begin(), b.end());
    {
        auto d = da;
        thrust::sort(d.begin(), d.end());
        auto w = a;
        std::sort(w.begin(), w.end());
        check(host(d) == w, "sort", type, n);
        auto e = db;
        thrust::sort(e.begin(), e.end());
        auto v = b;
        std::sort(v.begin(), v.end());
        thrust::device_vector<T> m(n + v.size());
        thrust::merge(d.begin(), d.end(), e.begin(), e.end(), m.begin());
        std::vector<T> x(n + v.size());
        std::merge(w.begin(), w.end(), v.begin(), v.end(), x.begin());
        check(host(m) == x, "merge", type, n);
        auto end = thrust::set_intersection(d.begin(), d.end(), e.begin(), e.end(), m.begin());
        auto wanted = std::set_intersection(w.begin(), w.end(), v.begin(), v.end(), x.begin());
        auto found = host(m);
        check(end - m.begin() == wanted - x.begin() && std::equal(x.begin(), wanted, found.begin()), "intersection", type, n);
        auto unique = d;
        unique.erase(thrust::unique(unique.begin(), unique.end()), unique.end());
        auto y = w;
        y.erase(std::unique(y.begin(), y.end()), y.end());
        check(host(unique) == y, "unique", type, n);
        thrust::device_vector<unsigned> places(v.size());
        thrust::lower_bound(d.begin(), d.end(), db.begin(), db.end(), places.begin());
        auto at = host(places);
        bool right = true;
        for (size_t i = 0; i < b.size(); i++) right &= at[i] == std::lower_bound(w.begin(), w.end(), b[i]) - w.begin();
        check(right, "lower bound", type, n);
    }
    {
        auto d = da;
        thrust::sort(d.begin(), d.end(), thrust::greater<T>());
        auto w = a;
        std::sort(w.begin(), w.end(), std::greater<T>());
        check(host(d) == w, "descending sort", type, n);
    }
    {
        auto keys = da;
        thrust::device_vector<unsigned> values(n);
        thrust::sequence(values.begin(), values.end());
        thrust::stable_sort_by_key(keys.begin(), keys.end(), values.begin());
        std::vector<unsigned> order(n);
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](unsigned i, unsigned j) { return a[i] < a[j]; });
        check(host(values) == order, "sort by key", type, n);
    }
    {
        auto odd = da;
        auto middle = thrust::stable_partition(odd.begin(), odd.end(), IsOdd<T>());
        auto w = a;
        auto wanted = std::stable_partition(w.begin(), w.end(), IsOdd<T>());
        check(middle - odd.begin() == wanted - w.begin() && host(odd) == w, "partition", type, n);
        auto less = da;
        less.erase(thrust::remove_if(less.begin(), less.end(), IsOdd<T>()), less.end());
        auto v = a;
        v.erase(std::remove_if(v.begin(), v.end(), IsOdd<T>()), v.end());
        check(host(less) == v, "remove", type, n);
        check(size_t(thrust::count_if(da.begin(), da.end(), IsOdd<T>())) == size_t(std::count_if(a.begin(), a.end(), IsOdd<T>())), "count", type, n);
    }
    {
        uint64_t found = thrust::transform_reduce(da.begin(), da.end(), Square<T>(), uint64_t(7), thrust::plus<uint64_t>());
        uint64_t wanted = 7;
        for (auto x : a) wanted += Square<T>()(x);
        check(found == wanted, "sum of squares", type, n);
        auto extremes = thrust::minmax_element(da.begin(), da.end());
        auto w = std::minmax_element(a.begin(), a.end());
        check(T(*extremes.first) == *w.first && T(*extremes.second) == *w.second, "extremes", type, n);
    }
    {
        // Sums are of the input's type.
        thrust::device_vector<int64_t> wide(da.begin(), da.end()), sums(n);
        thrust::inclusive_scan(wide.begin(), wide.end(), sums.begin());
        std::vector<int64_t> w(n);
        int64_t sum = 0;
        for (size_t i = 0; i < n; i++) w[i] = sum += int64_t(a[i]);
        check(host(sums) == w, "sums", type, n);
        auto keys = numbers<int>(n, 3);
        std::sort(keys.begin(), keys.begin() + n / 2);
        thrust::device_vector<int> dk(keys.begin(), keys.end());
        thrust::device_vector<int> ok(n);
        thrust::device_vector<int64_t> ov(n);
        auto end = thrust::reduce_by_key(dk.begin(), dk.end(), wide.begin(), ok.begin(), ov.begin());
        std::vector<int> wk;
        std::vector<int64_t> wv;
        for (size_t i = 0; i < n; i++) {
            if (i == 0 || keys[i] != keys[i - 1]) wk.push_back(keys[i]), wv.push_back(0);
            wv.back() += int64_t(a[i]);
        }
        ok.resize(end.first - ok.begin());
        ov.resize(end.second - ov.begin());
        check(host(ok) == wk && host(ov) == wv, "sums by key", type, n);
    }
    {
        void *scratch = nullptr;
        size_t bytes = 0;
        thrust::device_vector<T> out(n);
        auto in = thrust::raw_pointer_cast(da.data()), to = thrust::raw_pointer_cast(out.data());
        cub::DeviceMergeSort::SortKeysCopy(nullptr, bytes, in, to, n, thrust::less<T>());
        thrust::device_vector<char> room(bytes + 16);
        scratch = thrust::raw_pointer_cast(room.data());
        cub::DeviceMergeSort::SortKeysCopy(scratch, bytes, in, to, n, thrust::less<T>());
        auto w = a;
        std::sort(w.begin(), w.end());
        check(host(out) == w, "merge sort", type, n);
    }
}

template <class T> void integers_of_type(const char *type, size_t n) {
    auto a = numbers<T>(n, 1000);
    thrust::device_vector<T> da(a.begin(), a.end());
    const int bins = 64;
    thrust::device_vector<int> counts(bins);
    size_t bytes = 0;
    auto in = thrust::raw_pointer_cast(da.data());
    auto to = thrust::raw_pointer_cast(counts.data());
    T low = 0, high = 100;
    cub::DeviceHistogram::HistogramEven(nullptr, bytes, in, to, bins + 1, low, high, n);
    thrust::device_vector<char> room(bytes + 16);
    cub::DeviceHistogram::HistogramEven(thrust::raw_pointer_cast(room.data()), bytes, in, to, bins + 1, low, high, n);
    std::vector<int> wanted(bins);
    for (auto x : a)
        if (x >= low && x < high) wanted[uint64_t(x) * bins / 100]++;
    check(host(counts) == wanted, "histogram", type, n);

    std::vector<int> starts;
    for (size_t at = 0; at < n; at += 1 + source() % 700) starts.push_back(int(at));
    starts.push_back(int(n));
    thrust::device_vector<int> offsets(starts.begin(), starts.end());
    thrust::device_vector<T> most(starts.size() - 1), sorted(n);
    auto at = thrust::raw_pointer_cast(offsets.data());
    bytes = 0;
    cub::DeviceSegmentedReduce::Max(nullptr, bytes, in, thrust::raw_pointer_cast(most.data()), int(most.size()), at, at + 1);
    room.resize(bytes + 16);
    cub::DeviceSegmentedReduce::Max(thrust::raw_pointer_cast(room.data()), bytes, in, thrust::raw_pointer_cast(most.data()), int(most.size()), at, at + 1);
    bytes = 0;
    cub::DeviceSegmentedSort::SortKeys(nullptr, bytes, in, thrust::raw_pointer_cast(sorted.data()), n, int(most.size()), at, at + 1);
    room.resize(bytes + 16);
    cub::DeviceSegmentedSort::SortKeys(thrust::raw_pointer_cast(room.data()), bytes, in, thrust::raw_pointer_cast(sorted.data()), n, int(most.size()), at, at + 1);
    std::vector<T> peaks, parts = a;
    for (size_t i = 0; i + 1 < starts.size(); i++) {
        peaks.push_back(*std::max_element(a.begin() + starts[i], a.begin() + starts[i + 1]));
        std::sort(parts.begin() + starts[i], parts.begin() + starts[i + 1]);
    }
    check(host(most) == peaks, "maxima of segments", type, n);
    check(host(sorted) == parts, "sorted segments", type, n);
}

int main() {
    for (size_t n : {1ul, 31ul, 1000ul, 70001ul, 1ul << 20}) {
        all_of_type<uint8_t>("u8", n, 200);
        all_of_type<int16_t>("s16", n, 30000);
        all_of_type<int32_t>("s32", n, 2000000000);
        all_of_type<uint32_t>("u32", n, 4000000000);
        all_of_type<int64_t>("s64", n, 1ull << 31);
        all_of_type<float>("f32", n, 1 << 20);
        all_of_type<double>("f64", n, 1ull << 31);
        integers_of_type<int32_t>("s32", n);
        integers_of_type<uint64_t>("u64", n);
    }
    auto status = cudaDeviceSynchronize();
    printf("%d of %d checks fail, %s\n", failures, checks, cudaGetErrorString(status));
    return failures > 0 || status != cudaSuccess;
}
