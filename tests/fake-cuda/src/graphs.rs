//! Graphs of kernels: their nodes, and the executable copies.

use std::collections::HashMap;

/// One kernel node.
#[derive(Clone, Copy)]
pub struct Node {
    pub function: usize,
    pub shape: [u32; 6],
    pub shared_bytes: u32,
}

/// An executable graph, made of the graph `source`.
#[derive(Clone)]
pub struct Exec {
    pub source: u32,
    pub nodes: Vec<Node>,
}

/// Graphs and executable graphs have ids of one sequence, from 1.
#[derive(Default)]
pub struct Graphs {
    last_id: u32,
    graphs: HashMap<u32, Vec<Node>>,
    execs: HashMap<u32, Exec>,
}

impl Graphs {
    pub fn create(&mut self) -> u32 {
        let id = self.next_id();
        self.graphs.insert(id, Vec::new());
        id
    }

    /// The new node's number in its graph, from 0.
    pub fn add(&mut self, graph: u32, node: Node) -> Option<u32> {
        let nodes = self.graphs.get_mut(&graph)?;
        nodes.push(node);
        Some(nodes.len() as u32 - 1)
    }

    pub fn instantiate(&mut self, graph: u32) -> Option<u32> {
        let nodes = self.graphs.get(&graph)?.clone();
        let id = self.next_id();
        self.execs.insert(id, Exec { source: graph, nodes });
        Some(id)
    }

    pub fn exec(&self, id: u32) -> Option<&Exec> {
        self.execs.get(&id)
    }

    pub fn destroy(&mut self, graph: u32) -> bool {
        self.graphs.remove(&graph).is_some()
    }

    pub fn destroy_exec(&mut self, exec: u32) -> bool {
        self.execs.remove(&exec).is_some()
    }

    fn next_id(&mut self) -> u32 {
        self.last_id += 1;
        self.last_id
    }
}
