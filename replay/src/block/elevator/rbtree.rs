//! Requests in a red-black tree by first sector, balanced as Linux balances its trees (`lib/rbtree.c`).
//!
//! Several requests may start at the same sector (a rewrite of a block whose first write is still queued). Which of them
//! a search for that sector finds is then a matter of the tree's shape, so the shape has to be the kernel's: an equal
//! key goes to the right, a node with two children is replaced by its successor, and rotations follow the textbook
//! (Cormen, Leiserson, Rivest, Stein, *Introduction to Algorithms*, chapter 13), which the kernel implements.

use super::super::RqId;
use super::super::request::NIL;

/// A request's place in the tree.
#[derive(Clone, Copy, Debug)]
struct Node {
    key: u64,
    parent: RqId,
    /// Lower keys; higher or equal ones.
    child: [RqId; 2],
    red: bool,
    linked: bool,
}

const LOOSE: Node = Node { key: 0, parent: NIL, child: [NIL; 2], red: false, linked: false };

const LEFT: usize = 0;
const RIGHT: usize = 1;

/// A tree, by its root.
#[derive(Clone, Copy, Debug)]
pub(super) struct SectorTree {
    root: RqId,
}

impl Default for SectorTree {
    fn default() -> Self {
        Self { root: NIL }
    }
}

impl SectorTree {
    /// No request is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.root == NIL
    }
}

/// The nodes of all trees of a scheduler, in a table by request number: a request is in one tree at most, and nothing is
/// allocated once the table has grown.
#[derive(Clone, Debug, Default)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
}

impl Nodes {
    #[inline]
    fn node(&self, at: RqId) -> &Node {
        &self.nodes[at as usize]
    }

    #[inline]
    fn node_mut(&mut self, at: RqId) -> &mut Node {
        &mut self.nodes[at as usize]
    }

    #[inline]
    fn is_red(&self, at: RqId) -> bool {
        at != NIL && self.node(at).red
    }

    /// Whether this request is in a tree.
    pub(super) fn contains(&self, rq: RqId) -> bool {
        self.nodes.get(rq as usize).is_some_and(|n| n.linked)
    }

    /// Puts `new` where `old` hangs below its parent.
    fn hang(&mut self, tree: &mut SectorTree, parent: RqId, old: RqId, new: RqId) {
        if parent == NIL {
            tree.root = new;
        } else {
            let side = usize::from(self.node(parent).child[RIGHT] == old);
            self.node_mut(parent).child[side] = new;
        }
        if new != NIL {
            self.node_mut(new).parent = parent;
        }
    }

    /// Lifts the child of `top` that is opposite to `side` into its place; `top` sinks to `side`.
    fn rotate(&mut self, tree: &mut SectorTree, top: RqId, side: usize) {
        let up = self.node(top).child[1 - side];
        let inner = self.node(up).child[side];
        let parent = self.node(top).parent;
        self.hang(tree, parent, top, up);
        self.node_mut(top).child[1 - side] = inner;
        if inner != NIL {
            self.node_mut(inner).parent = top;
        }
        self.node_mut(up).child[side] = top;
        self.node_mut(top).parent = up;
    }

    /// Adds a request; behind all that start at the same sector.
    pub(super) fn insert(&mut self, tree: &mut SectorTree, key: u64, rq: RqId) {
        if self.nodes.len() <= rq as usize {
            self.nodes.resize(rq as usize + 1, LOOSE);
        }
        let (mut parent, mut side, mut at) = (NIL, LEFT, tree.root);
        while at != NIL {
            parent = at;
            side = usize::from(key >= self.node(at).key);
            at = self.node(at).child[side];
        }
        *self.node_mut(rq) = Node { key, parent, child: [NIL; 2], red: true, linked: true };
        if parent == NIL {
            tree.root = rq;
        } else {
            self.node_mut(parent).child[side] = rq;
        }
        self.mend_insertion(tree, rq);
    }

    fn mend_insertion(&mut self, tree: &mut SectorTree, mut at: RqId) {
        loop {
            let mut parent = self.node(at).parent;
            if parent == NIL {
                self.node_mut(at).red = false;
                return;
            }
            if !self.node(parent).red {
                return;
            }
            let top = self.node(parent).parent;
            let side = usize::from(self.node(top).child[RIGHT] == parent);
            let uncle = self.node(top).child[1 - side];
            if self.is_red(uncle) {
                self.node_mut(uncle).red = false;
                self.node_mut(parent).red = false;
                self.node_mut(top).red = true;
                at = top;
                continue;
            }
            if self.node(parent).child[1 - side] == at {
                self.rotate(tree, parent, side);
                parent = at;
            }
            self.rotate(tree, top, 1 - side);
            self.node_mut(parent).red = false;
            self.node_mut(top).red = true;
            return;
        }
    }

    /// Takes a request out, if it is in.
    pub(super) fn remove(&mut self, tree: &mut SectorTree, rq: RqId) {
        if !self.contains(rq) {
            return;
        }
        let gone = *self.node(rq);
        // Where a black node went missing: below this parent, at this place.
        let (parent, filler, was_black);
        if gone.child[LEFT] == NIL || gone.child[RIGHT] == NIL {
            filler = if gone.child[LEFT] == NIL { gone.child[RIGHT] } else { gone.child[LEFT] };
            parent = gone.parent;
            was_black = !gone.red;
            self.hang(tree, parent, rq, filler);
        } else {
            let mut heir = gone.child[RIGHT];
            while self.node(heir).child[LEFT] != NIL {
                heir = self.node(heir).child[LEFT];
            }
            was_black = !self.node(heir).red;
            filler = self.node(heir).child[RIGHT];
            if self.node(heir).parent == rq {
                parent = heir;
            } else {
                parent = self.node(heir).parent;
                self.hang(tree, parent, heir, filler);
                self.node_mut(heir).child[RIGHT] = gone.child[RIGHT];
                self.node_mut(gone.child[RIGHT]).parent = heir;
            }
            self.hang(tree, gone.parent, rq, heir);
            let h = self.node_mut(heir);
            h.child[LEFT] = gone.child[LEFT];
            h.red = gone.red;
            self.node_mut(gone.child[LEFT]).parent = heir;
        }
        *self.node_mut(rq) = LOOSE;
        if was_black {
            self.mend_removal(tree, filler, parent);
        }
    }

    fn mend_removal(&mut self, tree: &mut SectorTree, mut at: RqId, mut parent: RqId) {
        while parent != NIL && !self.is_red(at) {
            let side = usize::from(self.node(parent).child[RIGHT] == at && self.node(parent).child[LEFT] != at);
            let mut sibling = self.node(parent).child[1 - side];
            if self.is_red(sibling) {
                self.node_mut(sibling).red = false;
                self.node_mut(parent).red = true;
                self.rotate(tree, parent, side);
                sibling = self.node(parent).child[1 - side];
            }
            let (near, far) = (self.node(sibling).child[side], self.node(sibling).child[1 - side]);
            if !self.is_red(near) && !self.is_red(far) {
                self.node_mut(sibling).red = true;
                at = parent;
                parent = self.node(at).parent;
                continue;
            }
            if !self.is_red(far) {
                self.node_mut(near).red = false;
                self.node_mut(sibling).red = true;
                self.rotate(tree, sibling, 1 - side);
                sibling = near;
            }
            self.node_mut(sibling).red = self.node(parent).red;
            self.node_mut(parent).red = false;
            let far = self.node(sibling).child[1 - side];
            self.node_mut(far).red = false;
            self.rotate(tree, parent, side);
            return;
        }
        if at != NIL {
            self.node_mut(at).red = false;
        }
    }

    /// The request that a search from the root for exactly this sector meets first, `NIL` if there is none.
    pub(super) fn at(&self, tree: SectorTree, key: u64) -> RqId {
        let mut at = tree.root;
        while at != NIL {
            let n = self.node(at);
            if n.key == key {
                break;
            }
            at = n.child[usize::from(key > n.key)];
        }
        at
    }

    /// The first request at or behind a sector, `NIL` if there is none.
    pub(super) fn from(&self, tree: SectorTree, key: u64) -> RqId {
        let (mut at, mut best) = (tree.root, NIL);
        while at != NIL {
            let n = self.node(at);
            if n.key >= key {
                best = at;
                at = n.child[LEFT];
            } else {
                at = n.child[RIGHT];
            }
        }
        best
    }

    fn neighbour(&self, rq: RqId, side: usize) -> RqId {
        let mut at = self.node(rq).child[side];
        if at != NIL {
            while self.node(at).child[1 - side] != NIL {
                at = self.node(at).child[1 - side];
            }
            return at;
        }
        at = rq;
        loop {
            let parent = self.node(at).parent;
            if parent == NIL || self.node(parent).child[side] != at {
                return parent;
            }
            at = parent;
        }
    }

    /// The request behind one that is in the tree, `NIL` at the end.
    pub(super) fn next(&self, rq: RqId) -> RqId {
        self.neighbour(rq, RIGHT)
    }

    /// The request before one that is in the tree, `NIL` at the start.
    pub(super) fn prev(&self, rq: RqId) -> RqId {
        self.neighbour(rq, LEFT)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Nodes {
        /// Blacks on each way down from here; checks links and the rules of a red-black tree.
        fn check(&self, at: RqId, parent: RqId) -> usize {
            if at == NIL {
                return 1;
            }
            let n = self.node(at);
            assert_eq!(n.parent, parent);
            assert!(!(n.red && self.is_red(parent)), "red below red");
            let blacks = n.child.map(|c| self.check(c, at));
            assert_eq!(blacks[LEFT], blacks[RIGHT], "as many blacks on each way");
            blacks[LEFT] + usize::from(!n.red)
        }

        fn in_order(&self, tree: SectorTree) -> Vec<(u64, RqId)> {
            let mut out = Vec::new();
            let mut at = self.from(tree, 0);
            while at != NIL {
                out.push((self.node(at).key, at));
                at = self.next(at);
            }
            out
        }
    }

    #[test]
    fn of_three_equal_ones_the_search_meets_the_middle_one() {
        let (mut n, mut t) = (Nodes::default(), SectorTree::default());
        for rq in 0..3 {
            n.insert(&mut t, 64, rq);
        }
        // 1 was lifted above 0 and 2 when 2 came.
        assert_eq!((n.at(t, 64), n.prev(1), n.next(1)), (1, 0, 2));
        n.remove(&mut t, 1);
        assert_eq!(n.at(t, 64), 2, "the successor takes the place of a node with two children");
        assert_eq!(n.at(t, 65), NIL);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_stays_balanced_and_in_order(steps in prop::collection::vec((0..40u32, 0..12u64), 1..300)) {
            let (mut nodes, mut tree) = (Nodes::default(), SectorTree::default());
            let mut model: Vec<(u64, RqId)> = Vec::new();
            for (rq, key) in steps {
                if nodes.contains(rq) {
                    nodes.remove(&mut tree, rq);
                    model.retain(|e| e.1 != rq);
                } else {
                    nodes.insert(&mut tree, key, rq);
                    let at = model.partition_point(|e| e.0 <= key);
                    model.insert(at, (key, rq));
                }
                nodes.check(tree.root, NIL);
                prop_assert_eq!(nodes.in_order(tree), model.clone());
                prop_assert_eq!(tree.is_empty(), model.is_empty());
                for w in model.windows(2) {
                    prop_assert_eq!(nodes.prev(w[1].1), w[0].1);
                }
            }
        }
    }
}
