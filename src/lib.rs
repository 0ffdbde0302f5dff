//! Uptake makes a Secret change reach the running pod, and proves that it did.
