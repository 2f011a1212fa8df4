//! Serves a conversation on 127.0.0.1:3000.

use jaato_library::Jaato;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [model, key, url] =
        ["MODEL", "API_KEY", "BASE_URL"].map(|name| std::env::var(name).unwrap_or_default());
    let jaato =
        Jaato::builder().plugin(provider_openai::__jaato::MODULE).tool(embed_axum::ring_tool());
    let jaato = jaato.key("openai", key).base_url("openai", url).start().await?;
    let session = jaato.session().model(&format!("openai/{model}")).answer_by_handle().open()?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, embed_axum::router(session)).await?;
    Ok(())
}
