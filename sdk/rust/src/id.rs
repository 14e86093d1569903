//! Ids as types, so that a node's number cannot be taken for a job's.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id!(
    /// A node; given by the host, never reused within an instance's life.
    NodeId
);
id!(
    /// A job; given by the host, never reused within an instance's life.
    JobId
);
id!(
    /// A queue.
    QueueId
);
id!(
    /// An eligibility class: a set of nodes that its jobs may use.
    ClassId
);
id!(
    /// Jobs of one kind have the same predictions.
    KindId
);
id!(
    /// A GPU product; equal for nodes with the same product.
    GpuKind
);
