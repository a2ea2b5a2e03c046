// Kernels that each have one thing that a cubin tells about them. Compiled in CI only (.ci/cubins).

#include "more.cuh"

extern "C" __global__ void plain(float *out, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = in[i] * 2.0f + 1.0f;
    }
}

// Static shared memory, and a barrier.
__global__ void shared_sum(float *out, const float *in) {
    __shared__ float tile[32][33];
    __shared__ double extra[7];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
    if (threadIdx.x < 7) {
        extra[threadIdx.x] = in[threadIdx.x];
    }
    __syncthreads();
    out[threadIdx.x * 32 + threadIdx.y] = tile[threadIdx.x][threadIdx.y] + (float)extra[threadIdx.y % 7];
}

// Shared memory of a size that the launch gives.
__global__ void dynamic_shared(float *out) {
    extern __shared__ float room[];
    room[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = room[blockDim.x - 1 - threadIdx.x];
}

// An array that is indexed by a value only known at run time lies in local memory.
__global__ void local_array(int *out, int seed, int at) {
    int room[96];
    for (int i = 0; i < 96; i++) {
        room[i] = seed * i ^ out[i];
    }
    for (int i = 0; i < 96; i++) {
        room[(i * seed) % 96] += room[(at + i) % 96];
    }
    out[threadIdx.x] = room[at % 96];
}

// More values alive at once than its few registers hold: spilled.
__global__ void __launch_bounds__(1024, 2) spilled(float *out, const float *in) {
    float value[64];
#pragma unroll
    for (int i = 0; i < 64; i++) {
        value[i] = in[i * 1024 + threadIdx.x];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 64; i++) {
        out[i * 1024 + threadIdx.x] = value[63 - i] * value[(i * 7 + 3) % 64] + in[i];
    }
}

// As many registers as it likes.
__global__ void __launch_bounds__(64) many_registers(float *out, const float *in) {
    float value[128];
#pragma unroll
    for (int i = 0; i < 128; i++) {
        value[i] = in[i * 64 + threadIdx.x];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 128; i++) {
        out[i * 64 + threadIdx.x] = value[127 - i] * value[(i * 5 + 1) % 128];
    }
}

// A real call, so that the kernel has a stack, and a function that is no kernel.
__noinline__ __device__ float called(const float *in, int n) {
    return n < 2 ? in[n] : called(in, n - 1) * in[n] + called(in, n - 2);
}

__global__ void calls(float *out, const float *in, int n) {
    out[threadIdx.x] = called(in, n + threadIdx.x);
}

// Of another file, inlined.
__global__ void from_header(float *out, float by) {
    out[threadIdx.x] = polynomial(out[threadIdx.x], by);
}

namespace shapes {
template <typename T, int N>
__global__ void fold(T *out, const T *in) {
    __shared__ T part[N];
    part[threadIdx.x % N] = in[threadIdx.x];
    __syncthreads();
    T sum = 0;
    for (int i = 0; i < N; i++) {
        sum += part[i];
    }
    out[threadIdx.x] = sum;
}
} // namespace shapes

template __global__ void shapes::fold<float, 16>(float *, const float *);
template __global__ void shapes::fold<double, 256>(double *, const double *);
template __global__ void shapes::fold<long long, 3>(long long *, const long long *);
