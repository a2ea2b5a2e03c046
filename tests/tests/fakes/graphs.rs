//! Graphs: one record a node, or one for the whole.

use gputap_tests::isolated;

use crate::cuda::{Cuda, Handle, cubin};
use crate::cupti::{Cupti, Record, events, name, records};

/// A recording CUPTI, and a graph of three kernels.
fn three_kernels() -> (Cuda, Cupti, Handle, Handle) {
    let (cuda, cupti) = (Cuda::load(), Cupti::load());
    cuda.start();
    cupti.record();
    let functions = ["a", "b", "c"].map(|name| {
        let module = cuda.load_module(&cubin(name, 5_000)).unwrap();
        cuda.function(module, name).unwrap()
    });
    let (graph, exec) = cuda.graph(&functions);
    (cuda, cupti, graph, exec)
}

#[test]
fn each_node_is_a_kernel_of_the_launch() {
    isolated("graphs::each_node_is_a_kernel_of_the_launch", &[], || {
        let (cuda, cupti, _, exec) = three_kernels();
        let stream = cuda.stream();
        (0..2).for_each(|_| assert_eq!(cuda.launch_graph(exec, stream), 0));
        cuda.synchronize();
        cupti.flush(false);
        let kernels: Vec<_> = records()
            .iter()
            .map(|record| match record {
                Record::Kernel(kernel) => *kernel,
                other => panic!("{other:?}"),
            })
            .collect();
        let names: Vec<_> = kernels.iter().map(name).collect();
        assert_eq!(names, ["a", "b", "c", "a", "b", "c"]);
        let id = cupti.graph_exec_id(exec);
        assert!(kernels.iter().all(|kernel| kernel.graph_id == id && kernel.shape == [8, 1, 1, 128, 1, 1]));
        let nodes: Vec<_> = kernels.iter().map(|kernel| kernel.graph_node_id).collect();
        assert_eq!(nodes[..3], nodes[3..], "the same nodes again");
        assert!(nodes[..3].is_sorted_by(|a, b| a < b));
        let launches: Vec<_> = kernels.iter().map(|kernel| kernel.correlation_id).collect();
        assert!(launches[0] == launches[2] && launches[3] == launches[5] && launches[2] < launches[3]);
        assert!(kernels.is_sorted_by(|a, b| a.end <= b.start));
    });
}

#[test]
fn a_traced_graph_is_one_record() {
    isolated("graphs::a_traced_graph_is_one_record", &[], || {
        let (cuda, cupti, _, exec) = three_kernels();
        assert_eq!(cupti.enable(51), 0);
        assert_eq!(cuda.launch_graph(exec, std::ptr::null_mut()), 0);
        let module = cuda.load_module(&cubin("alone", 1_000)).unwrap();
        cuda.launch(cuda.function(module, "alone").unwrap(), std::ptr::null_mut());
        cuda.synchronize();
        cupti.flush(false);
        let [Record::Graph(graph), Record::Kernel(alone)] = records()[..] else { panic!("a graph and a kernel") };
        assert_eq!(graph.graph_id, cupti.graph_exec_id(exec));
        assert_eq!((graph.device_id, graph.context_id, graph.stream_id), (0, 1, 7));
        assert_eq!((graph.end_device_id, graph.end_context_id), (0, 1));
        // Three kernels of 5 µs, give or take 3 %.
        assert!((14_000..16_000).contains(&(graph.end - graph.start)), "{graph:?}");
        assert_eq!((name(&alone).as_str(), alone.graph_id), ("alone", 0));
    });
}

#[test]
fn the_newest_layout_names_the_source_graph() {
    let env = [("FAKE_CUPTI_VERSION", "130400")];
    isolated("graphs::the_newest_layout_names_the_source_graph", &env, || {
        let (cuda, cupti, graph, exec) = three_kernels();
        assert_eq!(cuda.launch_graph(exec, std::ptr::null_mut()), 0);
        cuda.synchronize();
        cupti.flush(false);
        let Record::Kernel(second) = records()[1] else { panic!("a kernel") };
        let (source, copy) = (cupti.graph_id(graph), cupti.graph_exec_id(exec));
        assert_ne!(source, copy);
        assert_eq!((second.source_graph_id, second.graph_id), (source, copy));
        assert_eq!(second.source_graph_node_id, u64::from(source) << 32 | 1);
        assert_eq!(second.graph_node_id, u64::from(copy) << 32 | 1);
    });
}

#[test]
fn a_graphs_launch_is_one_call() {
    isolated("graphs::a_graphs_launch_is_one_call", &[], || {
        let (cuda, cupti, graph, exec) = three_kernels();
        let subscriber = cupti.subscribe().unwrap();
        cupti.enable_callback(true, subscriber, 1, 514);
        cupti.enable_callback(true, subscriber, 1, 307);
        assert_eq!(cuda.launch_graph(exec, std::ptr::null_mut()), 0);
        cuda.synchronize();
        cupti.flush(false);
        let calls: Vec<_> = events().into_iter().map(|event| (event.cbid, event.call.unwrap())).collect();
        assert_eq!(calls.len(), 2);
        let id = records()[0].correlation_id();
        for (site, (cbid, call)) in (0..).zip(calls) {
            assert_eq!((cbid, call.site, call.correlation_id), (514, site, id));
            assert_eq!((call.function.as_str(), call.symbol), ("cuGraphLaunch", None));
        }
        cuda.destroy_graph(graph, exec);
        assert_eq!(cuda.launch_graph(exec, std::ptr::null_mut()), 400);
    });
}
