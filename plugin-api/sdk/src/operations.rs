//! Makes methods from the rows of service operations that have the word `sdk`.
//!
//! A method that keeps a number or whose value it is, sends or gets bytes, or computes its request
//! is written by hand next to its type.

/// Makes the methods of a group, in an `impl` block of the type that has them. `[.host]` is the
/// type's field with the context, `[]` is the context itself.
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

/// Makes the parameters and the request of a method; nothing without the word `sdk`.
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

/// Makes a method that returns the answer, a field of it, or a type that is made of the stream.
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
