//! Generates methods from the service operation rows that have an `sdk` part.
//!
//! Methods that keep or return a handle's number, send or receive bytes, or compute their request
//! are handwritten next to their type.

/// Generates the methods of a group in the `impl` block of their type. `[.host]` names the field
/// that holds the context. `[]` means that the type is the context itself.
macro_rules! methods {
    ($host:tt $(
        $(#[doc = $doc:literal])+
        $method:ident $name:literal:
        $request:tt $(+ $request_extra:ident)? => $answer:tt $(+ $answer_extra:ident)?
        $(, sdk $sdk:tt)?;
    )+) => {
        $(method! { [$($doc)+ $method $name $answer $host] $request $($sdk)? })+
    };
}

/// Generates a method's parameters and request. A row without an `sdk` part gets no method.
macro_rules! method {
    ($row:tt $request:tt) => {};
    ($row:tt $request:tt [() $($result:tt)*]) => {
        method_with! { $row [] [()] $($result)* }
    };
    ($row:tt $request:tt [(&$type:ty) $($result:tt)*]) => {
        method_with! { $row [request: &$type] [request] $($result)* }
    };
    ($row:tt $request:tt [($type:ty) $($result:tt)*]) => {
        method_with! { $row [request: $type] [request] $($result)* }
    };
    ($row:tt $request:tt [{ $($field:ident: $type:ty),+ } $($result:tt)*]) => {
        method_with! {
            $row [$($field: $type),+]
            [$request { $($field: $field.into(),)+ ..Default::default() }] $($result)*
        }
    };
}

/// Generates a method that returns the answer, one of its fields, or a type that wraps the stream.
macro_rules! method_with {
    (
        [$($doc:literal)+ $method:ident $name:literal $answer:tt [$($host:tt)*]]
        [$($parameter:tt)*] [$request:expr]
    ) => {
        $(#[doc = $doc])+
        ///
        /// # Errors
        /// As [`Reporter::service`](crate::Reporter::service).
        pub async fn $method(&self, $($parameter)*) -> jaato_types::Result<$answer> {
            self$($host)*.service($name, &$request).await
        }
    };
    ([$($doc:literal)+ $method:ident $name:literal $answer:tt [$($host:tt)*]]
        [$($parameter:tt)*] [$request:expr]
        . $field:ident: $type:ty
    ) => {
        $(#[doc = $doc])+
        ///
        /// # Errors
        /// As [`Reporter::service`](crate::Reporter::service).
        pub async fn $method(&self, $($parameter)*) -> jaato_types::Result<$type> {
            let answer: $answer = self$($host)*.service($name, &$request).await?;
            Ok(answer.$field)
        }
    };
    ([$($doc:literal)+ $method:ident $name:literal $answer:tt [$($host:tt)*]]
        [$($parameter:tt)*] [$request:expr]
        as $type:ty
    ) => {
        $(#[doc = $doc])+
        ///
        /// # Errors
        /// As [`Reporter::open`](crate::Reporter::open).
        pub async fn $method(&self, $($parameter)*) -> jaato_types::Result<$type> {
            Ok(self$($host)*.open($name, &$request).await?.into())
        }
    };
}
