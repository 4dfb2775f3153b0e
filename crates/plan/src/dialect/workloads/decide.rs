//! Decisions about DaemonSets, StatefulSets, Jobs and CronJobs. Pods and Jobs are created and deleted only as the
//! gate lets them; these are the lists of limits, in order of precedence:
//!
//! | decision                                   | limits                                        |
//! |--------------------------------------------|-----------------------------------------------|
//! | DaemonSet: a node without a pod            | the burst of a step                           |
//! | DaemonSet: pods that must not be there     | the burst of a step                           |
//! | DaemonSet: an outdated pod is deleted      | OnDelete, maxUnavailable, the burst           |
//! | DaemonSet: a new pod beside an outdated one | maxSurge, the burst                          |
//! | StatefulSet: missing pods of one step      | the burst of a step                           |
//! | StatefulSet, `OrderedReady`: any pod       | the ordinal whose turn it is                  |
//! | StatefulSet, `Parallel`: missing pods of this step | none                                  |
//! | StatefulSet, `Parallel`: removals          | none                                          |
//! | StatefulSet, `Parallel`: an outdated pod   | the ordinal whose turn it is                  |
//! | StatefulSet: several outdated pods at once | maxUnavailable                                |
//! | Job: pods are created                      | suspension, record, parallelism, back-off, burst |
//! | Job: an index whose pods failed            | its own back-off                              |
//! | Job: pods that are no longer wanted        | none                                          |
//! | CronJob: a Job that is due is created      | suspension, `concurrencyPolicy: Forbid`       |
//! | CronJob: Jobs before it, with `Replace`    | none                                          |

pub(crate) mod budget;
pub(crate) mod cron_job;
pub(crate) mod daemon_set;
pub(crate) mod job;
pub(crate) mod job_end;
pub(crate) mod revisions;
pub(crate) mod stateful_set;
mod success_policy;
