//! A Ballista cluster that knows Feedline's functions: the scheduler and the executors of the crates, with
//! `busy_ns` and `time_bucket` registered.
//!
//! ```text
//! cluster scheduler node0:50050
//! cluster executor node0:50050 node1:50051 /scratch/shuffle        # on every node
//! ```
//!
//! Both say on stdout when they are ready, and run until they are killed. With `--stock` they know what
//! Ballista knows, no more.

#![allow(clippy::print_stdout, reason = "a program of its own")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::ConfigProducer;
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::utils::{default_config_producer, default_session_builder};
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use clap::Parser;
use datafusion::execution::{FunctionRegistry as _, SessionState};
use datafusion::prelude::SessionConfig;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tokio::net::TcpListener;

/// A Ballista cluster that knows Feedline's functions.
#[derive(Debug, clap::Parser)]
struct Args {
    #[command(subcommand)]
    role: Role,
    /// Without Feedline's functions
    #[arg(long, global = true)]
    stock: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Role {
    /// Plans queries and deals out their parts
    Scheduler {
        /// Where it listens; port 0 takes a free one
        address: String,
    },
    /// Runs parts of queries
    Executor {
        /// Where the scheduler listens
        scheduler: String,
        /// Where this one listens, as an IP address and a port
        address: String,
        /// Folder for what goes from one part of a query to the next
        work: String,
    },
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let build = if args.stock { default_session_builder } else { session };
    match args.role {
        Role::Scheduler { address } => schedule(&address, build).await,
        Role::Executor { scheduler, address, work } => {
            execute(&scheduler, &address, work, build).await
        }
    }
}

type Build = fn(SessionConfig) -> datafusion::error::Result<SessionState>;

/// A session of Ballista's with our functions in it.
fn session(config: SessionConfig) -> datafusion::error::Result<SessionState> {
    let mut state = default_session_builder(config)?;
    for function in feedline_sql::scalars() {
        state.register_udf(function)?;
    }
    for function in feedline_sql::aggregates() {
        state.register_udaf(function)?;
    }
    Ok(state)
}

async fn schedule(address: &str, build: Build) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    let config = SchedulerConfig::default()
        .with_hostname(bound.ip().to_string())
        .with_port(bound.port())
        .with_scheduler_policy(TaskSchedulingPolicy::PullStaged)
        .with_override_session_builder(Arc::new(build));
    let cluster = BallistaCluster::new_from_config(&config).await?;
    let scheduler =
        create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, Arc::new(config)).await?;
    println!("scheduler ready at {bound}");
    start_grpc_service_with_listener(listener, scheduler).await?;
    Ok(())
}

async fn execute(
    scheduler: &str,
    address: &str,
    work: String,
    build: Build,
) -> Result<(), Box<dyn Error>> {
    let (scheduler_host, scheduler_port) = host_and_port(scheduler)?;
    let (host, port) = host_and_port(address)?;
    let producer: ConfigProducer = Arc::new(default_config_producer);
    let functions = build(producer())?;
    let config = ExecutorProcessConfig {
        bind_host: host.clone(),
        external_host: Some(host),
        port,
        scheduler_host,
        scheduler_port,
        task_scheduling_policy: TaskSchedulingPolicy::PullStaged,
        work_dir: Some(work),
        override_function_registry: Some(Arc::new((&functions).into())),
        ..ExecutorProcessConfig::default()
    };
    let health = config.health.clone();
    tokio::spawn(async move {
        while !health.is_ready() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        println!("executor ready at port {port}");
    });
    start_executor_process(Arc::new(config)).await?;
    Ok(())
}

fn host_and_port(address: &str) -> Result<(String, u16), Box<dyn Error>> {
    let (host, port) = address.rsplit_once(':').ok_or("expected HOST:PORT")?;
    Ok((host.to_owned(), port.parse()?))
}
