//! Graph records (`GRAPH_TRACE`): a graph's execution as a whole, without its nodes.

use super::field::{Field, record_layout};

record_layout! {
    /// Where the fields of a graph record lie.
    layout GraphTraceLayout;
    /// One execution of a graph.
    record GraphTraceRecord;
    always {
        /// The launching driver call's.
        correlation_id: u32,
        /// 0 where CUPTI has no time.
        start_ns: u64,
        /// 0 where CUPTI has no time.
        end_ns: u64,
        /// Where the first node ran. From 12.3 on `i32::MAX` where that is the host.
        device_id: u32,
        graph_id: u32,
        /// Where the first node ran. From 12.3 on `i32::MAX` where that is the host.
        context_id: u32,
        /// That the graph was launched in.
        stream_id: u32,
    }
    later {
        /// Where the last node ran. From 12.3 on.
        end_device_id: u32,
        /// Where the last node ran. From 12.3 on.
        end_context_id: u32,
    }
}

pub(super) const fn for_version(cupti_version: u32) -> &'static GraphTraceLayout {
    match cupti_version {
        ..21 => &GRAPH_TRACE,
        21.. => &GRAPH_TRACE2,
    }
}

const GRAPH_TRACE: GraphTraceLayout = GraphTraceLayout {
    structure: "CUpti_ActivityGraphTrace",
    size_bytes: 48,
    correlation_id: Field::at(4),
    start_ns: Field::at(8),
    end_ns: Field::at(16),
    device_id: Field::at(24),
    graph_id: Field::at(28),
    context_id: Field::at(32),
    stream_id: Field::at(36),
    end_device_id: None,
    end_context_id: None,
};

const GRAPH_TRACE2: GraphTraceLayout = GraphTraceLayout {
    structure: "CUpti_ActivityGraphTrace2",
    size_bytes: 56,
    end_device_id: Some(Field::at(48)),
    end_context_id: Some(Field::at(52)),
    ..GRAPH_TRACE
};

const _: () = assert!(GRAPH_TRACE.fits() && GRAPH_TRACE2.fits());
