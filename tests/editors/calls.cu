extern "C" __device__ int twice(int x) { return 2 * x; }
extern "C" __global__ void caller(int* a) {
    do *a = twice(*a); while (*a < 100);
}
