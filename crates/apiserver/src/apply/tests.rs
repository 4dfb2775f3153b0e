//! What apply and tracking do, by the specification and by recorded answers of Kubernetes.

mod corners;
mod properties;
mod recorded;
mod shapes;
mod tables;
