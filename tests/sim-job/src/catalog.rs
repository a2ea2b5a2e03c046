//! The kernels of a GPT training step: names, launch shapes, and how long they take beside each other on a large GPU.

/// A kernel that a job launches.
pub struct Kernel {
    pub name: &'static str,
    pub duration_ns: u64,
    pub grid: [u32; 3],
    pub block: u32,
    pub dynamic_shared_bytes: u32,
    pub static_shared_bytes: u32,
    pub registers: u32,
}

const fn kernel(name: &'static str, duration_ns: u64, grid: [u32; 3], block: u32, registers: u32) -> Kernel {
    Kernel { name, duration_ns, grid, block, dynamic_shared_bytes: 0, static_shared_bytes: 0, registers }
}

const fn shared(mut kernel: Kernel, static_bytes: u32, dynamic_bytes: u32) -> Kernel {
    kernel.static_shared_bytes = static_bytes;
    kernel.dynamic_shared_bytes = dynamic_bytes;
    kernel
}

pub const EMBED: usize = 0;
pub const LAYER_NORM: usize = 1;
pub const GEMM_QKV: usize = 2;
pub const FLASH_FORWARD: usize = 3;
pub const GEMM_OUT: usize = 4;
pub const ADD: usize = 5;
pub const GEMM_UP: usize = 6;
pub const GELU: usize = 7;
pub const GEMM_DOWN: usize = 8;
pub const SOFTMAX_FORWARD: usize = 9;
pub const NLL_LOSS: usize = 10;
pub const SOFTMAX_BACKWARD: usize = 11;
pub const GEMM_WEIGHT_GRAD: usize = 12;
pub const FLASH_BACKWARD: usize = 13;
pub const LAYER_NORM_BACKWARD: usize = 14;
pub const REDUCE: usize = 15;
pub const FILL: usize = 16;
pub const MUL: usize = 17;
pub const ALL_REDUCE: usize = 18;
pub const ADAM: usize = 19;

pub const KERNELS: [Kernel; 20] = [
    kernel(
        "_ZN2at6native21indexSelectLargeIndexIfljLi2ELi2ELin2ELb1EEEvNS_4cuda6detail10TensorInfoIT_T1_EENS4_IKS5_S6_EENS4_IKT0_S6_EEiiS6_S6_l",
        24_000,
        [1056, 1, 1],
        128,
        32,
    ),
    shared(
        kernel(
            "_ZN2at6native12_GLOBAL__N_128vectorized_layer_norm_kernelIN3c108BFloat16EfLb0EEEviT0_PKT_S8_S8_PS5_S9_S9_",
            11_000,
            [8192, 1, 1],
            128,
            32,
        ),
        24,
        0,
    ),
    shared(
        kernel(
            "_ZN7cutlass7Kernel2I68cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8EEvNT_6ParamsE",
            182_000,
            [18, 32, 1],
            256,
            238,
        ),
        0,
        73_728,
    ),
    shared(
        kernel(
            "_ZN5flash16flash_fwd_kernelINS_23Flash_fwd_kernel_traitsILi64ELi128ELi128ELi4ELb0ELb0EN7cutlass10bfloat16_tENS_19Flash_kernel_traitsILi64ELi128ELi128ELi4ES3_EEEELb0ELb1ELb0ELb0ELb1ELb1ELb0ELb0EEEvNS_16Flash_fwd_paramsE",
            146_000,
            [8, 8, 12],
            128,
            254,
        ),
        0,
        49_152,
    ),
    shared(
        kernel("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn", 68_000, [6, 64, 1], 256, 190),
        0,
        81_920,
    ),
    kernel(
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIN3c108BFloat16EEESt5arrayIPcLm3EEEEviT0_T1_",
        7_600,
        [6144, 1, 1],
        128,
        32,
    ),
    shared(
        kernel(
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
            246_000,
            [132, 1, 1],
            384,
            168,
        ),
        0,
        205_824,
    ),
    kernel(
        "_ZN2at6native29vectorized_elementwise_kernelILi4EZZZNS0_18GeluCUDAKernelImplERNS_18TensorIteratorBaseENS0_8GeluTypeEENKUlvE0_clEvENKUlvE2_clEvEUlN3c108BFloat16EE_St5arrayIPcLm2EEEEviT0_T1_",
        22_000,
        [24576, 1, 1],
        128,
        30,
    ),
    shared(
        kernel(
            "_ZN7cutlass7Kernel2I63cutlass_80_tensorop_bf16_s16816gemm_bf16_128x256_32x3_nn_align8EEvNT_6ParamsE",
            251_000,
            [6, 64, 1],
            256,
            234,
        ),
        0,
        73_728,
    ),
    kernel(
        "_ZN2at6native12_GLOBAL__N_123cunn_SoftMaxForwardGmemILi8EN3c108BFloat16EfS4_NS1_25LogSoftMaxForwardEpilogueEEEvPT2_PKT0_i",
        610_000,
        [8192, 1, 1],
        1024,
        40,
    ),
    kernel(
        "_ZN2at6native12_GLOBAL__N_138nll_loss_forward_reduce_cuda_kernel_2dIffliEEvPT_S3_PKS2_PKT1_S6_blll",
        9_100,
        [1, 1, 1],
        32,
        24,
    ),
    kernel(
        "_ZN2at6native12_GLOBAL__N_120cunn_SoftMaxBackwardILi8EN3c108BFloat16EfS4_NS1_26LogSoftMaxBackwardEpilogueEEEvPT0_PKT2_SA_i",
        840_000,
        [8192, 1, 1],
        1024,
        36,
    ),
    shared(
        kernel("ampere_bf16_s16816gemm_bf16_64x64_sliced1x2_ldg8_f2f_stages_64x5_nt", 164_000, [36, 12, 3], 128, 154),
        0,
        83_968,
    ),
    shared(
        kernel(
            "_ZN5flash44flash_bwd_dq_dk_dv_loop_seqk_parallel_kernelINS_23Flash_bwd_kernel_traitsILi64ELi128ELi128ELi8ELi4ELi4ELi4ELb0ELb0EN7cutlass10bfloat16_tENS_19Flash_kernel_traitsILi64ELi128ELi128ELi8ES3_EEEELb0ELb1ELb0ELb0ELb0ELb1ELb0EEEvNS_16Flash_bwd_paramsE",
            418_000,
            [8, 8, 12],
            256,
            255,
        ),
        0,
        147_456,
    ),
    shared(
        kernel(
            "_ZN2at6native12_GLOBAL__N_135GammaBetaBackwardCUDAKernelTemplateIN3c108BFloat16EfLj64ELj1ELj32ELb1ELb1ELb0EEEvllPKT_S7_PKT0_SA_PS5_SB_",
            31_000,
            [24, 1, 1],
            32,
            48,
        ),
        8_448,
        0,
    ),
    shared(
        kernel(
            "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_14func_wrapper_tIfNS0_11sum_functorIfffEEEEjfLi4ELi4EEEEEvT1_",
            12_500,
            [48, 16, 1],
            512,
            32,
        ),
        16,
        2_048,
    ),
    kernel(
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
        2_100,
        [512, 1, 1],
        128,
        20,
    ),
    kernel(
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13BinaryFunctorIfffNS0_15binary_internal10MulFunctorIfEEEESt5arrayIPcLm3EEEEviT0_T1_",
        5_300,
        [3072, 1, 1],
        128,
        32,
    ),
    kernel(
        "_Z40ncclDevKernel_AllReduce_Sum_bf16_RING_LL24ncclDevKernelArgsStorageILm4096EE",
        1_900_000,
        [24, 1, 1],
        544,
        96,
    ),
    kernel(
        "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_32FusedOptimizerTensorListMetadataILi4EEENS1_20FusedAdamMathFunctorIfLi4ELNS0_9ADAM_MODEE1ELb0EEEJPKfddddbEEEvT_T0_DpT1_",
        390_000,
        [320, 1, 1],
        512,
        56,
    ),
];

/// One step of a model of `layers` layers: kernels in launch order.
pub fn step(layers: usize) -> Vec<usize> {
    let forward = [LAYER_NORM, GEMM_QKV, FLASH_FORWARD, GEMM_OUT, ADD, LAYER_NORM, GEMM_UP, GELU, GEMM_DOWN, ADD];
    let backward = [
        GEMM_DOWN,
        GEMM_WEIGHT_GRAD,
        REDUCE,
        MUL,
        GEMM_UP,
        GEMM_WEIGHT_GRAD,
        REDUCE,
        LAYER_NORM_BACKWARD,
        ADD,
        GEMM_OUT,
        GEMM_WEIGHT_GRAD,
        REDUCE,
        FLASH_BACKWARD,
        GEMM_QKV,
        GEMM_WEIGHT_GRAD,
        REDUCE,
        LAYER_NORM_BACKWARD,
        ADD,
    ];
    let mut step = vec![EMBED, ADD];
    (0..layers).for_each(|_| step.extend(forward));
    step.extend([LAYER_NORM, GEMM_QKV, SOFTMAX_FORWARD, NLL_LOSS, FILL, SOFTMAX_BACKWARD, GEMM_WEIGHT_GRAD]);
    (0..layers).for_each(|_| step.extend(backward));
    step.extend([ALL_REDUCE, MUL, ADAM, ADAM]);
    step
}

/// The mean duration of a kernel of such a step, in nanoseconds.
pub fn mean_duration_ns(layers: usize) -> f64 {
    let step = step(layers);
    step.iter().map(|&k| KERNELS[k].duration_ns as f64).sum::<f64>() / step.len() as f64
}
