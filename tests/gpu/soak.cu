// soak MILLIONS [plain|graphs]: so many millions of empty kernels, half of them as nodes of a graph of 100, or none, or all;
// prints how many.
// Build: nvcc -O2 -std=c++17 -arch=sm_90
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#define CHECK(call) do { cudaError_t r = (call); if (r) { fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(r)); exit(3); } } while (0)
__global__ void node() {}
enum { NODES = 100 };

int main(int argc, char **argv) {
  const long wanted = atol(argv[1]) * 1000000;
  const bool plain = argc > 2 && !strcmp(argv[2], "plain"), graphs = argc > 2 && !strcmp(argv[2], "graphs");
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  cudaGraph_t graph;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < NODES; i++) node<<<1, 1, 0, stream>>>();
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  long launched = 0;
  for (long round = 0; launched < wanted; round++) {
    if (!plain) CHECK(cudaGraphLaunch(exec, stream)), launched += NODES;
    for (int i = 0; i < NODES && !graphs; i++) node<<<1, 1, 0, stream>>>();
    launched += graphs ? 0 : NODES;
    if (round % 50 == 0) CHECK(cudaStreamSynchronize(stream));
  }
  CHECK(cudaDeviceSynchronize());
  printf("soak %ld kernels\n", launched);
}
