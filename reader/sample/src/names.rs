//! The kernels of the sample: those of a training step, and names that break careless readers.

/// Bytes of the longest hostile name.
pub const HUGE_NAME_BYTES: usize = 500_000;

/// Mangled; the first is a collective.
pub fn of_a_step() -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = [
        "_Z40ncclDevKernel_AllReduce_Sum_bf16_RING_LL24ncclDevKernelArgsStorageILm4096EE",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_nt_n_tilesize128x256x64_warpgroupsize2x1x1_execute_segment_k_off_kernel__5x_cublas",
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
        "triton_poi_fused_add_gelu_0",
        "triton_red_fused_native_layer_norm_1",
    ]
    .map(|name| name.as_bytes().to_vec())
    .to_vec();
    let plain = [
        "flash_fwd_kernel",
        "flash_bwd_dot_do_o_kernel",
        "flash_bwd_dq_dk_dv_loop_kernel",
        "flash_bwd_convert_dq_kernel",
        "vectorized_layer_norm_kernel",
        "layer_norm_grad_input_kernel",
        "GammaBetaBackwardCUDAKernel",
        "gelu_forward_kernel",
        "gelu_backward_kernel",
        "fused_dropout_kernel",
        "masked_scale_kernel",
        "embedding_dense_backward",
        "cunn_SoftMaxForward",
        "cunn_SoftMaxBackward",
        "nll_loss_forward_reduce_cuda_kernel",
        "nll_loss_backward_reduce_cuda_kernel",
        "reduce_kernel",
        "CatArrayBatchedCopy",
        "transpose_readWrite_alignment_kernel",
        "indexSelectLargeIndex",
        "multi_tensor_l2norm_kernel",
        "multi_tensor_scale_kernel",
        "multi_tensor_adam_kernel",
        "lerp_cuda_kernel",
    ];
    names.extend(plain.map(|name| format!("_Z{}{name}PfPKfi", name.len()).into_bytes()));
    names
}

/// Quotes, control characters, a formula, bytes that are no UTF-8, half a megabyte, nothing at all, and two names that are
/// the same when demangled.
pub fn hostile() -> Vec<Vec<u8>> {
    let huge = [b"huge<".as_slice(), &b"int, ".repeat(HUGE_NAME_BYTES / 5), b"int>(int)"].concat();
    vec![
        b"evil\"quoted\\'kernel',;|\n\r\t\x1b[31m\x00<script>&amp;".to_vec(),
        b"=cmd|' /C calc'!A0".to_vec(),
        b"\xff\xfe_kernel_\x80\xc3\x28".to_vec(),
        "核函数_\u{202e}reversed".as_bytes().to_vec(),
        huge,
        Vec::new(),
        b"_ZN5PlanAC1Ev".to_vec(),
        b"_ZN5PlanAC2Ev".to_vec(),
    ]
}
