// Built with: nvcc 13.5 -O2 [-lineinfo] -arch=sm_NN -cubin two.cu; the 12.4 one by ptxas 12.4 from its PTX.
template <typename T> __global__ void scale(T *p, T by, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] *= by; }
template __global__ void scale<float>(float *, float, int);
extern "C" __global__ void k0(float *p) { p[threadIdx.x] += 1.0f; }
