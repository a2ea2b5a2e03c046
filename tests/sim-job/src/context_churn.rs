//! Contexts that come and go beside the one that the job works in.

use crate::driver::{Context, Driver};
use crate::job::JobError;

/// Makes a context, destroys it, and goes back to `home`.
pub fn churn(driver: &Driver, home: Context) -> Result<(), JobError> {
    let context = driver.create_context()?;
    driver.destroy_context(context)?;
    driver.set_current(home)
}
