//! Every kind of event that a reader can ask for, through the fake driver and a fake CUPTI of each version, whole and
//! damaged: what readers get is what CUPTI showed the tap, field by field and record by record.

mod actor;
mod inside;
mod marks;
mod run;
mod shown;
mod told;

mod callbacks;
mod clocks;
mod correlation;
mod damage;
mod drivers;
mod faults;
mod graphs;
mod launches;
mod ranges;
mod selftest;
mod subscribers;
mod unavailable;
mod versions;
mod wishes;
