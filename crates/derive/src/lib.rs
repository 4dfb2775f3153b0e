//! Derives of the same names as `schemars::JsonSchema` and `kube::CustomResource`, which take the
//! same attributes and expand to nothing.
//!
//! Only the tests of `convoy-api` derive schemas: they generate the CRDs that its library embeds.
//! Deriving them in every build costs a minute of compilation. The attributes stay on the types
//! without a `cfg_attr` around each of them, because these derives accept them.

use proc_macro::TokenStream;

/// Accepts `#[schemars(…)]`, and derives nothing.
#[proc_macro_derive(JsonSchema, attributes(schemars))]
pub fn json_schema(_: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// Accepts `#[kube(…)]`, and derives nothing: the type of the whole object, too, is for tests.
#[proc_macro_derive(CustomResource, attributes(kube))]
pub fn custom_resource(_: TokenStream) -> TokenStream {
    TokenStream::new()
}
