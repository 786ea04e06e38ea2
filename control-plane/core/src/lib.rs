//! Pure decisions of the reference control plane: quantities, selectors, scheduler, controllers.
