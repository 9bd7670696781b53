//! Places the blocks of a graph in layers, so that all edges except back edges lead down.

/// The positions of a graph's nodes and edges.
pub(super) struct Placement {
    /// The center of each node, in units of a node's width, and the layer of the node.
    pub(super) nodes: Vec<(f64, usize)>,
    /// For each edge that leads down: its two nodes, and its positions in the layers between them.
    pub(super) bends: Vec<((usize, usize), Vec<f64>)>,
    /// Back edges: edges that lead up or to their own node.
    pub(super) back: Vec<(usize, usize)>,
    pub(super) layers: usize,
}

/// The graph in layers. Its nodes are those of the graph, and one for each layer that an edge passes.
struct Layered {
    layers: Vec<Vec<usize>>,
    /// The neighbors of each node in the layer above and in the layer below.
    up: Vec<Vec<usize>>,
    down: Vec<Vec<usize>>,
}

/// The number of rounds in which nodes move towards their neighbors.
const ROUNDS: usize = 12;
/// The width of a node that stands for a passing edge.
const PASSAGE: f64 = 0.25;

/// Places the nodes of a graph. All nodes must be reachable from the first one.
pub(super) fn place(successors: &[Vec<usize>]) -> Placement {
    let order = order(successors);
    let mut rank = vec![0; successors.len()];
    order.iter().enumerate().for_each(|(i, &node)| rank[node] = i);
    let leads_down = |from: usize, to: usize| rank[from] < rank[to];
    let mut layer = vec![0; successors.len()];
    let (mut forward, mut back) = (Vec::new(), Vec::new());
    for &node in &order {
        for &to in &successors[node] {
            if leads_down(node, to) {
                layer[to] = layer[to].max(layer[node] + 1);
                forward.push((node, to));
            } else {
                back.push((node, to));
            }
        }
    }
    let layers = layer.iter().max().map_or(0, |last| last + 1);
    let count = successors.len();
    let mut graph = Layered {
        layers: vec![Vec::new(); layers],
        up: vec![Vec::new(); count],
        down: vec![Vec::new(); count],
    };
    order.iter().for_each(|&node| graph.layers[layer[node]].push(node));
    let mut chains = Vec::new();
    for (from, to) in forward {
        let mut last = from;
        let mut chain = Vec::new();
        for between in layer[from] + 1..layer[to] {
            let node = graph.up.len();
            graph.up.push(Vec::new());
            graph.down.push(Vec::new());
            graph.layers[between].push(node);
            graph.connect(last, node);
            chain.push(node);
            last = node;
        }
        graph.connect(last, to);
        chains.push(((from, to), chain));
    }
    graph.untangle();
    let middles = graph.spread(count);
    let bends =
        chains.into_iter().map(|(edge, chain)| (edge, chain.iter().map(|&node| middles[node]).collect()));
    Placement {
        nodes: (0..count).map(|node| (middles[node], layer[node])).collect(),
        bends: bends.collect(),
        back,
        layers,
    }
}

/// Orders the nodes so that each comes before its successors, except along back edges.
fn order(successors: &[Vec<usize>]) -> Vec<usize> {
    let mut seen = vec![false; successors.len()];
    let mut out = Vec::new();
    for root in 0..successors.len() {
        if std::mem::replace(&mut seen[root], true) {
            continue;
        }
        let mut pending = vec![(root, 0)];
        let mut found = Vec::new();
        while let Some((node, next)) = pending.last_mut() {
            // The last successor is visited first, so that the fall-through block stays next to its node.
            let to = successors[*node].iter().rev().nth(*next).copied();
            *next += 1;
            match to {
                Some(to) if !seen[to] => {
                    seen[to] = true;
                    pending.push((to, 0));
                }
                Some(_) => {}
                None => {
                    found.push(*node);
                    pending.pop();
                }
            }
        }
        found.reverse();
        out.extend(found);
    }
    out
}

impl Layered {
    fn connect(&mut self, above: usize, below: usize) {
        self.down[above].push(below);
        self.up[below].push(above);
    }

    /// Orders the nodes of each layer by the positions of their neighbors.
    fn untangle(&mut self) {
        for round in 0..ROUNDS {
            let downwards = round % 2 == 0;
            let count = self.layers.len();
            for i in 1..count {
                let (fixed, moved) = if downwards { (i - 1, i) } else { (count - i, count - i - 1) };
                let mut place = vec![0.0; self.up.len()];
                self.layers[fixed].iter().enumerate().for_each(|(i, &node)| place[node] = i as f64);
                let neighbors = if downwards { &self.up } else { &self.down };
                let mut keyed: Vec<(f64, usize)> = self.layers[moved]
                    .iter()
                    .enumerate()
                    .map(|(own, &node)| {
                        (mean(neighbors[node].iter().map(|&n| place[n])).unwrap_or(own as f64), node)
                    })
                    .collect();
                keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
                self.layers[moved] = keyed.into_iter().map(|(_, node)| node).collect();
            }
        }
    }

    /// The center of each node: near its neighbors, without overlapping the other nodes of its layer. The first
    /// `count` nodes are blocks and have full width.
    fn spread(&self, count: usize) -> Vec<f64> {
        let width = |node: usize| if node < count { 1.0 } else { PASSAGE };
        let mut middle = vec![0.0; self.up.len()];
        for layer in &self.layers {
            let mut at = 0.0;
            for &node in layer {
                middle[node] = at + width(node) / 2.0;
                at += width(node);
            }
        }
        for round in 0..ROUNDS {
            for i in 0..self.layers.len() {
                let layer =
                    if round % 2 == 0 { &self.layers[i] } else { &self.layers[self.layers.len() - 1 - i] };
                let wanted: Vec<f64> = layer
                    .iter()
                    .map(|&node| {
                        let around = self.up[node].iter().chain(&self.down[node]).map(|&n| middle[n]);
                        mean(around).unwrap_or(middle[node])
                    })
                    .collect();
                settle(layer, &wanted, &mut middle, width);
            }
        }
        let left = self
            .layers
            .iter()
            .filter_map(|layer| Some(middle[*layer.first()?] - width(*layer.first()?) / 2.0));
        let left = left.fold(f64::INFINITY, f64::min);
        middle.iter_mut().for_each(|at| *at -= left);
        middle
    }
}

/// Places the nodes of a layer as near as possible to their wanted positions, in order and without overlap.
fn settle(layer: &[usize], wanted: &[f64], middle: &mut [f64], width: impl Fn(usize) -> f64) {
    // Groups of touching nodes. Of each group: the first node, and the sum of the positions at which the group should
    // begin according to its nodes.
    let mut groups: Vec<(usize, f64, f64, usize)> = Vec::new();
    for (i, &node) in layer.iter().enumerate() {
        let half = width(node) / 2.0;
        let mut group = (i, wanted[i] - half, 2.0 * half, 1);
        while let Some(&(first, sum, size, members)) = groups.last() {
            let (start, own) = (sum / members as f64, group.1 / group.3 as f64);
            if start + size <= own {
                break;
            }
            groups.pop();
            // The nodes of the following group pull the joined group back by the width of the nodes before them.
            group = (first, sum + group.1 - size * group.3 as f64, size + group.2, members + group.3);
        }
        groups.push(group);
    }
    for (first, sum, _, members) in groups {
        let mut at = sum / members as f64;
        for &node in &layer[first..first + members] {
            middle[node] = at + width(node) / 2.0;
            at += width(node);
        }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diamond_and_a_loop() {
        let found = place(&[vec![1, 2], vec![3], vec![3], vec![0, 4], vec![]]);
        let layers: Vec<usize> = found.nodes.iter().map(|node| node.1).collect();
        assert_eq!(layers, [0, 1, 1, 2, 3]);
        assert_eq!(found.back, [(3, 0)]);
        assert!((found.nodes[1].0 - found.nodes[2].0).abs() >= 1.0);
        assert!((found.nodes[0].0 - found.nodes[3].0).abs() < 0.1);
    }

    #[test]
    fn edges_pass_layers() {
        let found = place(&[vec![1, 3], vec![2], vec![3], vec![]]);
        assert_eq!(found.layers, 4);
        let long = found.bends.iter().find(|(edge, _)| *edge == (0, 3)).expect("an edge");
        assert_eq!(long.1.len(), 2);
        // The edge passes beside the nodes.
        assert!((long.1[0] - found.nodes[1].0).abs() > 0.6, "{:?} {:?}", long.1, found.nodes);
    }
}
